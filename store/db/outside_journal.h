/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A rollback journal that is not beside its database but in memory of the machine (/dev/shm): where the disk is full,
 * a change that is cut off by SIGKILL can be undone all the same. Whoever opens the store next with this VFS finds the
 * journal and undoes it; SQLite does so by itself. The journal is that of one file: its name has the file's number,
 * device and time of birth, and it is believed if it belongs to the file's owner or to this user and nobody else may
 * write to it. It is gone when the machine starts again.
 */
#ifndef TRACESTORE_OUTSIDE_JOURNAL_H
#define TRACESTORE_OUTSIDE_JOURNAL_H

#include <stdbool.h>

#include "store/db/db.h"

/* The name of the VFS to open stores with. NULL, the default one: there is no memory for it. */
const char *outside_journal_vfs(void);

/* From now on this thread's new journals are outside. False: that is not possible for this database. */
bool outside_journal_begin(sqlite3 *db);

/* No more; the journal that is there, which has nothing to undo, is removed. */
void outside_journal_end(sqlite3 *db);

#endif
