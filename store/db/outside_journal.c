/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/db/outside_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"

#define FOLDER "/dev/shm"
#define ROOM ((uint64_t)32 << 20) /* that has to be there: steps on a full disk are small */
#define NAME_BYTES 160
#define PATH_MOST 4096

static const char suffix[] = "-journal";
static _Thread_local bool goes_outside;
static sqlite3_vfs *base;

/* Where the journal of a database would be, and whose the database is. SQLite takes the rights of files with such a
 * name from nowhere else (there is a dot behind the last hyphen). */
static bool outside_name(const char *database, char ret_name[NAME_BYTES], uid_t *ret_owner)
{
    struct statx status;

    if (statx(AT_FDCWD, database, 0, STATX_BASIC_STATS | STATX_BTIME, &status) ||
        !(status.stx_mask & STATX_BTIME))
        return false;
    snprintf(ret_name, NAME_BYTES, FOLDER "/tracectl-%x-%x-%llx-%llx.%x.journal", status.stx_dev_major,
             status.stx_dev_minor, (unsigned long long)status.stx_ino,
             (unsigned long long)status.stx_btime.tv_sec, status.stx_btime.tv_nsec);
    *ret_owner = status.stx_uid;
    return true;
}

/* The same for the name that a journal would have beside its database. */
static bool outside_of(const char *journal, char ret_name[NAME_BYTES], uid_t *ret_owner)
{
    char database[PATH_MOST];
    size_t length = journal ? strlen(journal) : 0, end = sizeof(suffix) - 1;

    if (length <= end || length >= sizeof(database) || strcmp(journal + length - end, suffix) != 0)
        return false;
    memcpy(database, journal, length - end);
    database[length - end] = '\0';
    return outside_name(database, ret_name, ret_owner);
}

/* Whether it is there, not empty, and its writer is to be trusted. */
static bool is_believed(const char *name, uid_t owner, bool *ret_filled)
{
    struct stat status;

    *ret_filled = false;
    if (lstat(name, &status) || !S_ISREG(status.st_mode) || status.st_mode & 077 || status.st_nlink != 1 ||
        (status.st_uid != geteuid() && status.st_uid != owner))
        return false;
    *ret_filled = status.st_size > 0;
    return true;
}

/* Whether there is a journal outside that may have something to undo. */
static bool is_outside(const char *journal, char ret_name[NAME_BYTES])
{
    bool filled = false;
    uid_t owner;

    return outside_of(journal, ret_name, &owner) && is_believed(ret_name, owner, &filled) && filled;
}

/* Makes it, with rights for nobody else. */
static bool make(const char *journal, char ret_name[NAME_BYTES])
{
    bool filled;
    uid_t owner;

    if (!outside_of(journal, ret_name, &owner))
        return false;
    AUTO_CLOSE int fd = open(ret_name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd >= 0 || (errno == EEXIST && is_believed(ret_name, owner, &filled));
}

/* ------------------------------------------------------------------------------------------ the VFS */

/* The name of an open file has to stay: it is kept behind what the file is to SQLite. */
static int open_any(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags, int *ret_flags)
{
    char *name = (char *)file + base->szOsFile;

    (void)vfs;
    if (flags & SQLITE_OPEN_MAIN_JOURNAL &&
        (goes_outside ? make(path, name) : access(path, F_OK) && is_outside(path, name)))
        path = name;
    return base->xOpen(base, path, file, flags, ret_flags);
}

static int delete_any(sqlite3_vfs *vfs, const char *path, int sync)
{
    char name[NAME_BYTES];

    (void)vfs;
    if (!is_outside(path, name))
        return base->xDelete(base, path, sync);
    return unlink(name) && errno != ENOENT ? SQLITE_IOERR_DELETE : SQLITE_OK;
}

static int access_any(sqlite3_vfs *vfs, const char *path, int flags, int *ret_result)
{
    int result = base->xAccess(base, path, flags, ret_result);
    char name[NAME_BYTES];

    (void)vfs;
    if (result == SQLITE_OK && flags == SQLITE_ACCESS_EXISTS && !*ret_result)
        *ret_result = is_outside(path, name);
    return result;
}

static void set_up(void)
{
    static sqlite3_vfs made;

    base = sqlite3_vfs_find(NULL);
    if (!base)
        return;
    made = *base;
    made.pNext = NULL;
    made.zName = "tracectl";
    made.szOsFile = base->szOsFile + NAME_BYTES;
    made.xOpen = open_any;
    made.xDelete = delete_any;
    made.xAccess = access_any;
    if (sqlite3_vfs_register(&made, 0) != SQLITE_OK)
        base = NULL;
}

const char *outside_journal_vfs(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, set_up);
    return base ? "tracectl" : NULL;
}

bool outside_journal_begin(sqlite3 *db)
{
    const char *database = sqlite3_db_filename(db, "main");
    char name[NAME_BYTES];
    struct statvfs room;
    uid_t owner;

    goes_outside = outside_journal_vfs() && database && outside_name(database, name, &owner) &&
                   !statvfs(FOLDER, &room) && (uint64_t)room.f_bavail * room.f_frsize >= ROOM;
    return goes_outside;
}

void outside_journal_end(sqlite3 *db)
{
    const char *database = sqlite3_db_filename(db, "main");
    char name[NAME_BYTES];
    bool filled;
    uid_t owner;

    if (goes_outside && database && outside_name(database, name, &owner) && is_believed(name, owner, &filled))
        unlink(name);
    goes_outside = false;
}
