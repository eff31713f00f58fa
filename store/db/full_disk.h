/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Changing a store on a disk that has no room for SQLite's log: what deletes runs has to work there.
 *
 * Without room for the log's index a connection keeps the database to itself, with the index in memory
 * (open.c). Without room for the log a step is taken with a rollback journal in the machine's memory
 * (full_disk_begin, full_disk_end): the file is changed in place, and where that is cut off by SIGKILL, the next one
 * who opens the store undoes it (outside_journal.h). Without that memory, or when the machine goes down in the middle
 * of it, the store is left damaged. So steps are small, signals wait until a step has ended, and the next step has a
 * log again if the first one has made room.
 */
#ifndef TRACESTORE_FULL_DISK_H
#define TRACESTORE_FULL_DISK_H

#include <signal.h>
#include <stdbool.h>

#include "store/db/db.h"

/* Whether the connection's last call failed with `result` for want of room. */
bool full_disk_is_why(sqlite3 *db, int result);

/* Until full_disk_end no log is written and no signal arrives. -EBUSY: other connections use the store. */
int full_disk_begin(sqlite3 *db, sigset_t *ret_signals);
void full_disk_end(sqlite3 *db, const sigset_t *signals);

#endif
