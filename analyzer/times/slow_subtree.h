/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TRACECTL_ANALYZER_TIMES_SLOW_SUBTREE_H
#define TRACECTL_ANALYZER_TIMES_SLOW_SUBTREE_H

#include "analyzer/times/slow_calls.h"
#include "store/db/sqlite.h"

/* Fills in when a call that returned began, the calls around it, and what it called up to `depth` levels below it,
 * from its events. The caller releases the call in any case. -EBADMSG: its thread has other events there; -ENOMEM,
 * what reading the store met. */
int slow_subtree_read(sqlite3 *db, struct slow_call *call, size_t depth, struct error *err);

#endif
