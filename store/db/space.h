/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The room that a store takes on its disk: measured, given back a piece at a time, set aside. */
#ifndef TRACESTORE_SPACE_H
#define TRACESTORE_SPACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "store/db/sqlite.h"

struct error;

/* Bytes of a store, without its log. */
struct space {
    uint64_t used; /* of the pages that hold something */
    uint64_t file; /* of all pages, free ones too */
};

int space_measure(sqlite3 *db, struct space *space, struct error *err);

/* Moves up to `pages` free pages to the end of the file and cuts them off. Returns 1 when there are more, 0
 * when there are none (or the file was made without auto_vacuum), <0. */
int space_give_back(sqlite3 *db, int64_t pages, struct error *err);

/* Copies the log into the database and empties it, unless another connection is in the way: it does not wait.
 * That is only desired, so there is no error. */
void space_empty_log(sqlite3 *db);

/* Has this connection copy the log into the database whenever it gets longer than this, or than 1,000 pages.
 */
void space_limit_log(sqlite3 *db, uint64_t bytes);

/* Sets room aside on the disk of the file `path`, for what must be written when the disk is full: one
 * `part`th of what is free, from `least` to `most` bytes, in a file that has no name and is gone with the
 * process. Returns its descriptor, or -1 where there is no room for it or the file system cannot do it. */
int space_reserve(const char *path, unsigned part, uint64_t least, uint64_t most, uint64_t *ret_size);

/* A new file without a name in the folder of `path`, which can be given one (linkat) where the file system
 * has such files (O_TMPFILE). Its descriptor, or -1. */
int space_unnamed_file(const char *path, mode_t mode);

#endif
