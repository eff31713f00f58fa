/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The names of functions for columns of virtual tables: each is read once while few are asked for. */
#ifndef TRACESTORE_NAME_CACHE_H
#define TRACESTORE_NAME_CACHE_H

#include <stdint.h>

#include "store/db/sqlite.h"

#define NAME_CACHE_SIZE 256u

/* All zero is empty. */
struct name_cache {
    sqlite3_stmt *find;
    struct {
        uint32_t function; /* 0: nothing is here */
        char *name;        /* NULL: it has none */
    } names[NAME_CACHE_SIZE];
};

/* Gives the function's name for people (demangled) as the result of a column; NULL when the store has no such
 * function. An SQLite result code. */
int name_cache_result(struct name_cache *cache, sqlite3 *db, uint32_t function, sqlite3_context *context);
void name_cache_release(struct name_cache *cache);

#endif
