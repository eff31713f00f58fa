/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * SQLite makes a database step by step: an empty file, a first page, tables. Here all of it is made in memory
 * first, written to a file without a name, and that is linked to the path.
 */
#include "store/db/create.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "store/db/schema.h"
#include "store/db/space.h"

/* Names, paths and what a program did are its user's own; chmod shares them. SQLite gives the files beside
 * the store the store's mode. */
#define STORE_FILE_MODE 0600

DEFINE_CLEANUP(cleanup_db, sqlite3 *, sqlite3_close)
DEFINE_CLEANUP(cleanup_image, unsigned char *, sqlite3_free)

/* A database in memory cannot be in WAL mode; its file says so in two bytes (sqlite.org/fileformat2.html). */
enum { WRITE_VERSION = 18, READ_VERSION = 19, VERSION_WAL = 2, HEADER_SIZE = 100 };

/* The bytes of a store without runs, NULL: no memory. */
static unsigned char *empty_store(sqlite3_int64 *ret_size)
{
    CLEANUP(cleanup_db) sqlite3 *db = NULL;
    unsigned char *image;

    if (sqlite3_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK || schema_make(db, NULL))
        return NULL;
    image = sqlite3_serialize(db, "main", ret_size, 0);
    if (image && *ret_size >= HEADER_SIZE)
        image[WRITE_VERSION] = image[READ_VERSION] = VERSION_WAL;
    return image;
}

void store_create_file(const char *path)
{
    sqlite3_int64 size = 0;
    CLEANUP(cleanup_image) unsigned char *image = empty_store(&size);
    AUTO_CLOSE int fd = image ? space_unnamed_file(path, STORE_FILE_MODE) : -1, empty = -1;
    char name[32];

    if (fd >= 0 && !fchmod(fd, STORE_FILE_MODE) && write(fd, image, (size_t)size) == size && !fsync(fd)) {
        snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
        if (!linkat(AT_FDCWD, name, AT_FDCWD, path, AT_SYMLINK_FOLLOW))
            return;
    }
    /* SQLite makes the rest of it, and gives the files beside it the mode of this one. */
    empty = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, STORE_FILE_MODE);
    if (empty >= 0)
        fchmod(empty, STORE_FILE_MODE);
}
