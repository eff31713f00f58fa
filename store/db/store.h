/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a store handle is, for the files of store/ that implement its public functions. */
#ifndef TRACESTORE_STORE_H
#define TRACESTORE_STORE_H

#include <stdbool.h>

#include "store/api/tracestore.h"
#include "store/db/db.h"

/* schema.sql writes both. */
#define STORE_APPLICATION_ID 0x74726163 /* "trac" */
#define STORE_VERSION 1

#define STORE_BUSY_TIMEOUT_MS 10000

/* What is set aside for a full disk. */
enum store_reserve {
    RESERVE_LOG,  /* for the log's pages, so that it can be emptied */
    RESERVE_LAST, /* for the few pages that end a run; nothing else may take it */
    STORE_RESERVES
};

struct tracestore {
    sqlite3 *db;
    char *path;
    enum tracestore_mode mode;
    int reserves[STORE_RESERVES]; /* descriptors of room set aside (space.h), -1: none */
    /* What the log may take: as much as the reserve holds twice; a part of the size that is kept. 0: no limit
     */
    uint64_t log_for_reserve, log_for_size;
};

/* Opens a store for reading that tracestore_open may refuse as damaged: as much of it as SQLite lets one see.
 * A store of another version is refused (-ENOTSUP). Close with sqlite3_close. */
int store_open_damaged(const char *path, sqlite3 **ret_db, struct error *err);

/* What a connection gets before it may no longer write: an SQLite result, and on failure why, in memory of
 * sqlite3_malloc(). */
typedef int (*store_prepare)(sqlite3 *db, char **ret_message);

/* tracestore_open() with `prepare`, NULL: nothing, in place of the tables of events, for what needs no SQL of
 * them. Close with tracestore_free(). */
int store_open(const char *path, enum tracestore_mode mode, store_prepare prepare,
               struct tracestore **ret_store, struct error *err);

/* The functions that a run calls, the journal included, in ascending order. Free with free(). */
int store_called_functions(sqlite3 *db, int64_t run_id, uint32_t **ret_ids, size_t *ret_count,
                           struct error *err);

/* "BOOT_ID PID START_TICKS" of a process, which must live. -ENOMEM. */
int recorder_identity(int pid, char **ret_identity);
/* Whether the process that a recorder's identity names still runs on this machine. */
bool recorder_alive(const char *identity);

#endif
