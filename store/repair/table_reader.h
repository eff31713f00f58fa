/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reading tables of a damaged database. SQLite finds the row behind a key by going down from the table's
 * root, so a page that cannot be read only hides the keys below it: the reader looks for the next key at
 * which it gets an answer, with steps that double and then by halving, and continues there.
 */
#ifndef TRACESTORE_TABLE_READER_H
#define TRACESTORE_TABLE_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "store/db/sqlite.h"

struct table_losses {
    bool stop_at_first; /* in: do not read behind what cannot be read */
    uint64_t rows;      /* that are there but cannot be read */
    uint64_t stretches; /* of keys without an answer, with an unknown number of rows */
};

/* Calls `visit` with every row of `table` that can be read, in the order of its key; the row's columns are
 * `columns`. A table without row ids (`tags`) is read from both ends. A non-zero result of `visit` ends the
 * reading and is returned. A table that is not there has no rows. -ENOMEM. */
int table_read(sqlite3 *db, const char *table, const char *columns,
               int (*visit)(void *context, sqlite3_stmt *row), void *context, struct table_losses *losses);

#endif
