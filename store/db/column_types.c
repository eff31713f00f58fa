/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/db/column_types.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"

static const char what[] = "cannot check the columns";

/* Whether an INTEGER column counts something, so that less than none is wrong. Times do, too; numbers of
 * rows, addresses, and what the kernel numbers may have any sign. */
static bool counts(const char *column)
{
    static const char *const names[] = {"ns",       "seq",       "first_seq",    "event_count",
                                        "checksum", "raw_bytes", "codec",        "count",
                                        "calls",    "name_hash", "calls_missed", "channel"};
    size_t length = strlen(column);

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (!strcmp(names[i], column))
            return true;
    return length > 3 && !strcmp(column + length - 3, "_ns");
}

/* The letter of db_row() for the column; '-': the table says nothing, or there is no such column. */
static char column_type_of(sqlite3 *db, const char *table, const char *column)
{
    const char *declared = NULL;
    int not_null = 0, key = 0;
    char letter = '-';

    if (sqlite3_table_column_metadata(db, "main", table, column, &declared, NULL, &not_null, &key, NULL) !=
            SQLITE_OK ||
        !declared)
        return letter;
    if (!strcmp(declared, "INTEGER"))
        letter = counts(column) ? 'n' : 'i';
    else if (!strcmp(declared, "TEXT"))
        letter = 't';
    else if (!strcmp(declared, "BLOB"))
        letter = 'b';
    else if (!strcmp(declared, "REAL"))
        letter = 'd';
    return not_null || key || letter == '-' ? letter : (char)toupper(letter);
}

char *column_types_of(sqlite3 *db, const char *table, const char *columns)
{
    char *types = calloc(strlen(columns) + 1, 1);

    for (size_t column = 0; types && *columns; column++) {
        size_t length = strcspn(columns, ",");
        AUTO_FREE char *name = strndup(columns, length);

        if (!name) {
            free(types);
            return NULL;
        }
        types[column] = column_type_of(db, table, name);
        columns += length + strspn(columns + length, ", ");
    }
    return types;
}

/* ------------------------------------------------------------------------------------------ all rows */

struct checking {
    sqlite3 *db;
    void (*report)(void *context, const char *table, const char *column, int64_t rows);
    void *context;
    struct error *err;
};

/* The condition that the column of a row is as it may be; {"": any is}. */
static const char *condition(char letter)
{
    switch (tolower(letter)) {
    case 'i':
        return "typeof(\"%w\") = 'integer'";
    case 'n':
        return "(typeof(\"%w\") = 'integer' AND \"%w\" >= 0)";
    case 't':
        return "typeof(\"%w\") = 'text'";
    case 'b':
        return "typeof(\"%w\") = 'blob'";
    case 'd':
        return "typeof(\"%w\") IN ('real', 'integer')";
    default:
        return "";
    }
}

/* Counts the rows whose column is wrong: reading the rows themselves, not an index, and nothing of a long
 * value. */
static int check_column(const struct checking *checking, const char *table, const char *column)
{
    char letter = column_type_of(checking->db, table, column);
    bool may_be_null = isupper((unsigned char)letter);
    int64_t rows = 0;
    char *test, *sql;
    int code;

    if (letter == '-')
        return 0;
    test = sqlite3_mprintf(condition(letter), column, column);
    sql =
        test ? sqlite3_mprintf("SELECT count(*) FROM main.\"%w\" NOT INDEXED WHERE NOT coalesce(%s, 0)%s%w%s",
                               table, test, may_be_null ? " AND \"" : "", may_be_null ? column : "",
                               may_be_null ? "\" NOTNULL" : "")
             : NULL;
    code =
        sql ? db_number(checking->db, what, &rows, checking->err, sql, "") : error_no_memory(checking->err);
    sqlite3_free(test);
    sqlite3_free(sql);
    if (!code && rows)
        checking->report(checking->context, table, column, rows);
    return code;
}

int column_types_check(sqlite3 *db,
                       void (*report)(void *context, const char *table, const char *column, int64_t rows),
                       void *context, struct error *err)
{
    struct checking checking = {db, report, context, err};
    AUTO_STATEMENT *row = NULL;
    int result = SQLITE_DONE,
        code =
            db_prepare(db,
                       "SELECT t.name, c.name FROM main.sqlite_schema t, pragma_table_info(t.name, 'main') c"
                       " WHERE t.type = 'table' AND t.rootpage > 0 AND t.name NOT LIKE 'function_trigrams%'"
                       " AND t.name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
                       what, &row, err);

    while (!code && (result = db_row(row, "tt")) == SQLITE_ROW) {
        code = check_column(&checking, (const char *)sqlite3_column_text(row, 0),
                            (const char *)sqlite3_column_text(row, 1));
        if (code != -ENOMEM) /* SQLite has told of the damage to the table */
            code = 0;
    }
    return code || result == SQLITE_DONE ? code : db_fail(db, err, what);
}
