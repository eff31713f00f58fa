/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Disk space set aside by a store that is written, so that a full disk leaves it in order.
 *
 * SQLite writes a transaction into its log, and copies the log into the database later (a checkpoint).
 * Pages that lengthen the database need their space twice, and a log that can no longer be copied cannot
 * be shortened either: then nothing can be deleted. So as much space as the copy needs is set aside before
 * each commit.
 */
#ifndef TRACESTORE_RESERVE_H
#define TRACESTORE_RESERVE_H

#include "store/db/store.h"

struct error;

/* Before a commit: sets aside what the database file grows by when the log is copied into it, the
 * transaction's pages included. 0; -ENOSPC: the disk has no room for that, so the transaction should be
 * rolled back. A store that sets nothing aside (tracestore_reserve) is not checked. */
int reserve_cover_log(struct tracestore *store, const char *what, struct error *err);

/* Gives up what is set aside for the log, and copies the log into the database. */
void reserve_use_for_log(struct tracestore *store);

#endif
