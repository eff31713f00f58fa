/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SQLite with less to write: errors as errno and error line, values bound by a string of types. */
#ifndef TRACESTORE_DB_H
#define TRACESTORE_DB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "store/db/sqlite.h"

struct error;

static inline void cleanup_statement(sqlite3_stmt **statement)
{
    sqlite3_finalize(*statement);
}
#define AUTO_STATEMENT CLEANUP(cleanup_statement) sqlite3_stmt

/* The errno of an SQLite result code, negative; 0 for OK, ROW and DONE. */
int db_errno(int result);

/* Sets `err` to "WHAT in store FILE: WHY (REMEDY)" after the last call on `db` failed; returns its errno. */
int db_fail(sqlite3 *db, struct error *err, const char *what);

/* The same where the disk has no room for what is to be written: -ENOSPC. */
int db_fail_full(sqlite3 *db, struct error *err, const char *what);

int db_exec(sqlite3 *db, const char *sql, const char *what, struct error *err);
int db_prepare(sqlite3 *db, const char *sql, const char *what, sqlite3_stmt **ret_statement,
               struct error *err);

/*
 * Binds the parameters ?1, ?2, ... to the arguments that `types` spells, one letter each:
 *   i int64_t    z int64_t, 0 is NULL    n int64_t, negative is NULL
 *   t text, NULL is ''    T text, NULL is NULL    d double    b const void * and size_t
 * Texts and blobs are borrowed until the statement is bound anew. Returns an SQLite result code.
 */
int db_bind(sqlite3_stmt *statement, const char *types, ...);

/* Prepares, binds and runs a statement that gives no rows. */
int db_run(sqlite3 *db, const char *what, struct error *err, const char *sql, const char *types, ...);

/* Steps a bound statement that gives no rows, and resets it. */
int db_step(sqlite3 *db, sqlite3_stmt *statement, const char *what, struct error *err);

/* The first column of the first row, 0 when there is no row or it is NULL. -EBADMSG: it is no INTEGER. */
int db_number(sqlite3 *db, const char *what, int64_t *ret_number, struct error *err, const char *sql,
              const char *types, ...);

/*
 * The next row of a bound statement, with its columns checked: a store may be damaged, or made by somebody
 * who wants a reader to fail, and SQLite keeps any type in any column. `types` has a letter for each column,
 * from the first on: i INTEGER    n INTEGER that is not negative    t TEXT    b BLOB    d REAL or INTEGER -
 * anything The capitals allow NULL as well; columns behind the last letter are not looked at. SQLITE_ROW:
 * every column is as wanted; SQLITE_DONE; SQLITE_MISMATCH: one is not, which db_fail() then tells as well
 * (-EBADMSG); else SQLite's error.
 */
int db_row(sqlite3_stmt *statement, const char *types);

/* Whether the row that the statement stands at is as `types` say. */
bool db_row_is(sqlite3_stmt *statement, const char *types);

/* A transaction that writes: takes the lock at once. db_commit rolls back when it fails. */
int db_begin(sqlite3 *db, const char *what, struct error *err);
int db_commit(sqlite3 *db, const char *what, struct error *err);
void db_rollback(sqlite3 *db);

/* A column's text as a string of its own; NULL reads as "". NULL: out of memory. */
char *db_text(sqlite3_stmt *statement, int column);

#endif
