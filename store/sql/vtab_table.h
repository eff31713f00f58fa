/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What every virtual table does alike: it is connected without arguments, and its cursor knows the number of
 * the row it has come to, and whether it is behind the last one.
 */
#ifndef TRACESTORE_VTAB_TABLE_H
#define TRACESTORE_VTAB_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "store/db/sqlite.h"

struct error;

/* The first member of each table's cursor. xFilter and xNext keep `row` and `end`. */
struct vtab_cursor {
    sqlite3_vtab_cursor base;
    sqlite3_int64 row;
    bool end;
};

/* xConnect of a table without arguments, declared by `declaration`. vtab_of() returns `of`; vtab_connect()
 * keeps the database for vtab_db(). */
int vtab_connect_to(sqlite3 *db, void *of, const char *declaration, sqlite3_vtab **ret_table);
int vtab_connect(sqlite3 *db, const char *declaration, sqlite3_vtab **ret_table);
int vtab_disconnect(sqlite3_vtab *table);
void *vtab_of(sqlite3_vtab *table);

static inline sqlite3 *vtab_db(sqlite3_vtab *table)
{
    return vtab_of(table);
}

/* xOpen: a cursor of `size` bytes, all zero, at its end. To be freed by sqlite3_free. */
int vtab_open(size_t size, sqlite3_vtab_cursor **ret_cursor);
int vtab_eof(sqlite3_vtab_cursor *cursor);
int vtab_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *ret_row);

/* The result code for a failure, with its text put into the table. */
int vtab_fail(sqlite3_vtab *table, int code, const struct error *err);

/* The methods of the table whose functions are table_connect, table_best_index, ... Without xCreate a table
 * is there by its name, and cannot be made or dropped. */
#define VTAB_MODULE(table) \
    { \
        .xConnect = table##_connect, .xBestIndex = table##_best_index, .xDisconnect = vtab_disconnect, \
        .xOpen = table##_open, .xClose = table##_close, .xFilter = table##_filter, .xNext = table##_next, \
        .xEof = vtab_eof, .xColumn = table##_column, .xRowid = vtab_rowid, \
    }

#endif
