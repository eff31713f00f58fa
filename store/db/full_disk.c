/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/db/full_disk.h"

#include <errno.h>
#include <string.h>

#include "store/db/outside_journal.h"

bool full_disk_is_why(sqlite3 *db, int result)
{
    const int why = sqlite3_system_errno(db);

    return (result & 0xff) == SQLITE_FULL ||
           (((result & 0xff) == SQLITE_IOERR || (result & 0xff) == SQLITE_CANTOPEN) &&
            (why == ENOSPC || why == EDQUOT));
}

/* Whether the database has the mode now. */
static bool set_mode(sqlite3 *db, const char *pragma, const char *mode)
{
    AUTO_STATEMENT *row = NULL;
    const char *now;

    if (sqlite3_prepare_v2(db, pragma, -1, &row, NULL) != SQLITE_OK || sqlite3_step(row) != SQLITE_ROW)
        return false;
    now = (const char *)sqlite3_column_text(row, 0);
    return now && !strcmp(now, mode);
}

int full_disk_begin(sqlite3 *db, sigset_t *ret_signals)
{
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, ret_signals);
    if (set_mode(db, "PRAGMA main.locking_mode = EXCLUSIVE", "exclusive") &&
        ((outside_journal_begin(db) && set_mode(db, "PRAGMA main.journal_mode = TRUNCATE", "truncate")) ||
         set_mode(db, "PRAGMA main.journal_mode = MEMORY", "memory")))
        return 0;
    full_disk_end(db, ret_signals);
    return -EBUSY;
}

void full_disk_end(sqlite3 *db, const sigset_t *signals)
{
    set_mode(db, "PRAGMA main.journal_mode = WAL", "wal");
    outside_journal_end(db);
    pthread_sigmask(SIG_SETMASK, signals, NULL);
}
