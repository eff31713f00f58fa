/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/db/db.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "store/db/full_disk.h"

/* What SQLite's result codes mean to us. */
static const struct reason {
    int result;
    int code;
    const char *why;
    const char *remedy;
} reasons[] = {
    {SQLITE_FULL, -ENOSPC, "no space left on device", "free some, or delete old runs"},
    {SQLITE_BUSY, -EBUSY, "another process keeps it locked", "try again"},
    {SQLITE_LOCKED, -EBUSY, "another statement keeps it locked", "try again"},
    {SQLITE_READONLY, -EROFS, "it is read-only", "check the permissions of the file and its folder"},
    {SQLITE_CORRUPT, -EBADMSG, "the file is damaged or cut short", "run 'tracectl verify' for details"},
    {SQLITE_NOTADB, -EINVAL, "not a tracectl store", "name another file with -d"},
    {SQLITE_CANTOPEN, -EACCES, "it, or a file beside it, cannot be opened",
     "check the permissions of the file and its folder"},
    {SQLITE_PERM, -EACCES, "permission denied", "check the permissions of the file and its folder"},
    {SQLITE_NOMEM, -ENOMEM, "out of memory", NULL},
    {SQLITE_INTERRUPT, -EINTR, "interrupted", NULL},
    {SQLITE_TOOBIG, -EFBIG, "a value is too big", NULL},
    {SQLITE_ROW, -EBADMSG, "a value is not of the type or in the range of its column",
     "run 'tracectl verify' for details"},
};

static const struct reason *find_reason(int result)
{
    for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
        if (reasons[i].result == (result & 0xff))
            return &reasons[i];
    return NULL;
}

int db_errno(int result)
{
    const struct reason *reason = find_reason(result);

    if (result == SQLITE_OK || result == SQLITE_ROW || result == SQLITE_DONE)
        return 0;
    return reason ? reason->code : -EIO;
}

/* The result of the last call. A full disk, or a quota, also comes as an I/O error. */
static int last_result(sqlite3 *db)
{
    int result = sqlite3_errcode(db);

    if (result == SQLITE_OK) /* the statement was reset behind a row that is not as it has to be */
        return SQLITE_ROW;
    return full_disk_is_why(db, result) ? SQLITE_FULL : result;
}

static int fail_with(sqlite3 *db, int result, struct error *err, const char *what)
{
    const struct reason *reason = find_reason(result);
    const char *file = sqlite3_db_filename(db, "main");
    const char *remedy = reason ? reason->remedy : NULL;

    return error_say(err, reason ? reason->code : -EIO, "%s in store %s: %s%s%s%s", what, file ? file : "",
                     reason ? reason->why : sqlite3_errmsg(db), remedy ? " (" : "", remedy ? remedy : "",
                     remedy ? ")" : "");
}

int db_fail(sqlite3 *db, struct error *err, const char *what)
{
    return fail_with(db, last_result(db), err, what);
}

int db_fail_full(sqlite3 *db, struct error *err, const char *what)
{
    return fail_with(db, SQLITE_FULL, err, what);
}

int db_exec(sqlite3 *db, const char *sql, const char *what, struct error *err)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : db_fail(db, err, what);
}

int db_prepare(sqlite3 *db, const char *sql, const char *what, sqlite3_stmt **ret_statement,
               struct error *err)
{
    return sqlite3_prepare_v2(db, sql, -1, ret_statement, NULL) == SQLITE_OK ? 0 : db_fail(db, err, what);
}

static int bind_number(sqlite3_stmt *statement, int at, char type, int64_t number)
{
    if ((type == 'z' && !number) || (type == 'n' && number < 0))
        return sqlite3_bind_null(statement, at);
    return sqlite3_bind_int64(statement, at, number);
}

static int bind_values(sqlite3_stmt *statement, const char *types, va_list values)
{
    int result = sqlite3_reset(statement);

    for (int at = 1; types[at - 1]; at++) {
        char type = types[at - 1];

        if (type == 't' || type == 'T') {
            const char *text = va_arg(values, const char *);

            if (!text && type == 't')
                text = "";
            result = sqlite3_bind_text(statement, at, text, -1, SQLITE_STATIC);
        } else if (type == 'b') {
            const void *data = va_arg(values, const void *);

            result = sqlite3_bind_blob64(statement, at, data, va_arg(values, size_t), SQLITE_STATIC);
        } else if (type == 'd') {
            result = sqlite3_bind_double(statement, at, va_arg(values, double));
        } else {
            result = bind_number(statement, at, type, va_arg(values, int64_t));
        }
        if (result != SQLITE_OK)
            break;
    }
    return result;
}

int db_bind(sqlite3_stmt *statement, const char *types, ...)
{
    va_list values;
    int result;

    va_start(values, types);
    result = bind_values(statement, types, values);
    va_end(values);
    return result;
}

int db_step(sqlite3 *db, sqlite3_stmt *statement, const char *what, struct error *err)
{
    int code = 0;

    if (sqlite3_step(statement) != SQLITE_DONE)
        code = db_fail(db, err, what);
    sqlite3_reset(statement);
    return code;
}

static bool column_is(sqlite3_stmt *statement, int column, char type)
{
    int has = sqlite3_column_type(statement, column);

    if (has == SQLITE_NULL)
        return type == '-' || (type >= 'A' && type <= 'Z');
    switch (type) {
    case 'i':
    case 'I':
        return has == SQLITE_INTEGER;
    case 'n':
    case 'N':
        return has == SQLITE_INTEGER && sqlite3_column_int64(statement, column) >= 0;
    case 't':
    case 'T':
        return has == SQLITE_TEXT;
    case 'b':
    case 'B':
        return has == SQLITE_BLOB;
    case 'd':
    case 'D':
        return has == SQLITE_FLOAT || has == SQLITE_INTEGER;
    default:
        return true;
    }
}

bool db_row_is(sqlite3_stmt *statement, const char *types)
{
    for (int column = 0; types[column]; column++)
        if (!column_is(statement, column, types[column]))
            return false;
    return true;
}

int db_row(sqlite3_stmt *statement, const char *types)
{
    int result = sqlite3_step(statement);

    return result == SQLITE_ROW && !db_row_is(statement, types) ? SQLITE_MISMATCH : result;
}

/* A statement with its values. On failure, too, the caller finalizes what is in *ret_statement. */
static int prepare_bound(sqlite3 *db, const char *what, struct error *err, const char *sql, const char *types,
                         va_list values, sqlite3_stmt **ret_statement)
{
    int code = db_prepare(db, sql, what, ret_statement, err);

    if (code)
        return code;
    return bind_values(*ret_statement, types, values) == SQLITE_OK ? 0 : db_fail(db, err, what);
}

int db_run(sqlite3 *db, const char *what, struct error *err, const char *sql, const char *types, ...)
{
    AUTO_STATEMENT *statement = NULL;
    va_list values;
    int code;

    va_start(values, types);
    code = prepare_bound(db, what, err, sql, types, values, &statement);
    va_end(values);
    return code ? code : db_step(db, statement, what, err);
}

int db_number(sqlite3 *db, const char *what, int64_t *ret_number, struct error *err, const char *sql,
              const char *types, ...)
{
    AUTO_STATEMENT *statement = NULL;
    va_list values;
    int code, result;

    va_start(values, types);
    code = prepare_bound(db, what, err, sql, types, values, &statement);
    va_end(values);
    if (code)
        return code;
    result = db_row(statement, "I");
    if (result != SQLITE_ROW && result != SQLITE_DONE)
        return db_fail(db, err, what);
    *ret_number = result == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    return 0;
}

int db_begin(sqlite3 *db, const char *what, struct error *err)
{
    return db_exec(db, "BEGIN IMMEDIATE", what, err);
}

int db_commit(sqlite3 *db, const char *what, struct error *err)
{
    int code = db_exec(db, "COMMIT", what, err);

    if (code)
        db_rollback(db);
    return code;
}

/* What failed before may have rolled back already, so there may be nothing to do. */
void db_rollback(sqlite3 *db)
{
    if (!sqlite3_get_autocommit(db))
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
}

char *db_text(sqlite3_stmt *statement, int column)
{
    const char *text = (const char *)sqlite3_column_text(statement, column);

    return strdup(text ? text : "");
}
