/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/db/space.h"

#include <fcntl.h>
#include <libgen.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "store/db/store.h"

#define LOG_PAGES 1000 /* SQLite's own default */

static const char what[] = "cannot measure";

int space_measure(sqlite3 *db, struct space *space, struct error *err)
{
    int64_t pages, free_pages, page_size;
    int code = db_number(db, what, &pages, err, "PRAGMA page_count", "");

    if (!code)
        code = db_number(db, what, &free_pages, err, "PRAGMA freelist_count", "");
    if (!code)
        code = db_number(db, what, &page_size, err, "PRAGMA page_size", "");
    if (!code)
        *space = (struct space){.used = (uint64_t)((pages - free_pages) * page_size),
                                .file = (uint64_t)(pages * page_size)};
    return code;
}

int space_give_back(sqlite3 *db, int64_t pages, struct error *err)
{
    int64_t before, after;
    char sql[64];
    int code = db_number(db, what, &before, err, "PRAGMA freelist_count", "");

    if (code || !before)
        return code;
    snprintf(sql, sizeof(sql), "PRAGMA incremental_vacuum(%lld)", (long long)pages);
    code = db_exec(db, sql, "cannot give space back", err);
    if (!code)
        code = db_number(db, what, &after, err, "PRAGMA freelist_count", "");
    return code ? code : after > 0 && after < before;
}

void space_limit_log(sqlite3 *db, uint64_t bytes)
{
    int64_t page_size;

    if (db_number(db, what, &page_size, NULL, "PRAGMA page_size", "") || !page_size)
        return;
    bytes /= (uint64_t)page_size;
    sqlite3_wal_autocheckpoint(db, bytes > LOG_PAGES ? LOG_PAGES : (int)bytes);
}

void space_empty_log(sqlite3 *db)
{
    sqlite3_busy_timeout(db, 0);
    sqlite3_wal_checkpoint_v2(db, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    sqlite3_busy_timeout(db, STORE_BUSY_TIMEOUT_MS);
}

int space_unnamed_file(const char *path, mode_t mode)
{
    AUTO_FREE char *copy = strdup(path), *name = NULL;
    const char *folder = copy ? dirname(copy) : NULL;
    int fd = folder ? open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, mode) : -1;

    if (fd >= 0 || !folder || asprintf(&name, "%s/.tracectl.XXXXXX", folder) < 0)
        return fd;
    fd = mkostemp(name, O_CLOEXEC);
    if (fd >= 0)
        unlink(name);
    return fd;
}

int space_reserve(const char *path, unsigned part, uint64_t least, uint64_t most, uint64_t *ret_size)
{
    struct statvfs disk;
    uint64_t room;
    int fd = space_unnamed_file(path, 0600);

    if (fd < 0)
        return -1;
    if (fstatvfs(fd, &disk) == 0) {
        room = (uint64_t)disk.f_bavail * disk.f_frsize / part;
        if (room > most)
            room = most;
        if (room >= least && fallocate(fd, 0, 0, (off_t)room) == 0) {
            *ret_size = room;
            return fd;
        }
    }
    close(fd);
    return -1;
}
