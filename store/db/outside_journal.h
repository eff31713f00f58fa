/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A rollback journal that is not beside its database but in memory of the machine (/dev/shm): where the disk is full,
 * a change that is cut off by SIGKILL can be undone all the same. When the store is opened next with this VFS, SQLite finds
 * the journal and rolls it back. It belongs to one file, whose inode number, device and time of creation are in its
 * name, and is used if it is owned by the owner of that file or by this user, and nobody else can write to it. It does
 * not survive a reboot.
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
