/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What query and sql share: the store with all tables, statements that only read, and their rows on stdout.
 */
#ifndef TRACECTL_CLI_SQL_OUTPUT_H
#define TRACECTL_CLI_SQL_OUTPUT_H

#include "base/error.h"
#include "store/sqlite.h"
#include "store/tracestore.h"

enum sql_mode { SQL_TABLE, SQL_CSV, SQL_JSON, SQL_LINE };

/* Opens the store of -d for reading, with the tables of the analyzer beside those of the store. */
int sql_open(struct tracestore **ret_store, struct error *err);

/* Prepares the first statement of `sql`, NULL when there is only space and comment; *ret_rest is what stands
 * behind it. Refuses (-EPERM) what would change something. */
int sql_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret_statement, const char **ret_rest,
                struct error *err);

/* Steps through all rows and prints them. Returns SQLITE_DONE, or why it ended before: SQLITE_ROW when the
 * output is broken. */
int sql_print(sqlite3_stmt *statement, enum sql_mode mode);

/* The error line for what SQLite said last. Returns -EINVAL. */
int sql_fail(sqlite3 *db, struct error *err);

#endif
