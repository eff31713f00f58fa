/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/sql/sql_output.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "analyzer/cascade/vtab_cascade.h"
#include "analyzer/loops/vtab_loops.h"
#include "base/array.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/output.h"
#include "cli/common/table.h"

enum { TIMEOUT_MIN_NS = 1000000 };

uint64_t sql_parse_timeout(const char *text, const struct argp_state *state)
{
    return strcmp(text, "none") ? cli_parse_duration(state, "--timeout", text, TIMEOUT_MIN_NS) : 0;
}

int sql_open(struct tracestore **ret_store, struct statement_guard *guard, struct error *err)
{
    AUTO_STORE struct tracestore *store = NULL;
    int code = cli_open_store(TRACESTORE_READ, &store, err);

    if (code < 0)
        return code;
    if (loops_register_vtab(tracestore_db(store)) != SQLITE_OK || cascade_register_vtabs(store) != SQLITE_OK)
        return error_say(err, -EIO, "opening the store: %s", sqlite3_errmsg(tracestore_db(store)));
    if (guard_statements(tracestore_db(store), guard) < 0)
        return error_no_memory(err);
    *ret_store = take_pointer(store);
    return 0;
}

/* ------------------------------------------------------------------------------------------ preparing */

int sql_fail(sqlite3 *db, const struct statement_guard *guard, struct error *err)
{
    AUTO_FREE char *line = strdup(sqlite3_errmsg(db));

    if (guard->timed_out)
        return error_say(err, -ETIMEDOUT, "query: stopped after %g seconds (--timeout sets the limit)",
                         (double)guard->limit_ns / 1e9);
    for (char *at = line; at && *at; at++)
        if (*at == '\n')
            *at = ' ';
    return error_say(err, -EINVAL, "query: %s", line ? line : "out of memory");
}

int sql_prepare(sqlite3 *db, struct statement_guard *guard, const char *sql, sqlite3_stmt **ret_statement,
                const char **ret_rest, struct error *err)
{
    AUTO_STATEMENT *statement = NULL;
    const char *rest = NULL;
    int r;

    statement_guard_begin(guard);
    guard->preparing = true;
    r = sqlite3_prepare_v2(db, sql, -1, &statement, &rest);
    guard->preparing = false;
    if (guard->refused || (statement && !sqlite3_stmt_readonly(statement)))
        return error_say(err, -EPERM,
                         "query: the statement does more than read the store: not allowed (tracectl rm "
                         "removes runs)");
    if (r != SQLITE_OK)
        return sql_fail(db, guard, err);
    *ret_statement = take_pointer(statement);
    *ret_rest = rest;
    return 0;
}

/* ------------------------------------------------------------------------------------------ printing */

/* A cell as text; blobs as hexadecimal digits in a string to free, which is NULL for all others. */
static const char *cell_text(sqlite3_stmt *statement, int column, char **ret_hex)
{
    const uint8_t *bytes;
    int size;

    *ret_hex = NULL;
    if (sqlite3_column_type(statement, column) != SQLITE_BLOB)
        return cli_text(statement, column);
    bytes = sqlite3_column_blob(statement, column);
    size = sqlite3_column_bytes(statement, column);
    *ret_hex = malloc(2 * (size_t)size + 1);
    if (!*ret_hex)
        return "";
    **ret_hex = '\0';
    for (int i = 0; i < size; i++)
        sprintf(*ret_hex + 2 * i, "%02x", bytes[i]);
    return *ret_hex;
}

static int print_csv(sqlite3_stmt *statement)
{
    int columns = sqlite3_column_count(statement), r;

    for (int i = 0; i < columns; i++) {
        if (i)
            putchar(',');
        text_put_csv(stdout, sqlite3_column_name(statement, i));
    }
    putchar('\n');
    while ((r = sqlite3_step(statement)) == SQLITE_ROW && !cli_output_broken()) {
        for (int i = 0; i < columns; i++) {
            char *hex;

            if (i)
                putchar(',');
            text_put_csv(stdout, cell_text(statement, i, &hex));
            free(hex);
        }
        putchar('\n');
    }
    return r;
}

static void print_json_cell(sqlite3_stmt *statement, int column)
{
    AUTO_JSON json_t *json = NULL;
    AUTO_FREE char *hex = NULL;
    double number;

    switch (sqlite3_column_type(statement, column)) {
    case SQLITE_NULL:
        fputs("null", stdout);
        return;
    case SQLITE_INTEGER:
        text_show(stdout, cli_text(statement, column));
        return;
    case SQLITE_FLOAT:
        number = sqlite3_column_double(statement, column);
        json = isfinite(number) ? json_real(number) : json_null();
        break;
    default:
        json = cli_json_text(cell_text(statement, column, &hex));
        break;
    }
    json_dumpf(json, stdout, JSON_ENCODE_ANY);
}

/* Two columns of one name are two keys: "name" and "name_2". */
static char *json_key(sqlite3_stmt *statement, int column)
{
    const char *name = sqlite3_column_name(statement, column);
    AUTO_FREE char *key = NULL;
    AUTO_JSON json_t *json = NULL;
    int same = 1, length;

    for (int i = 0; i < column; i++)
        same += !strcmp(sqlite3_column_name(statement, i), name);
    length = same == 1 ? asprintf(&key, "%s", name) : asprintf(&key, "%s_%d", name, same);
    if (length < 0)
        key = NULL;
    json = key ? cli_json_text(key) : NULL;
    return json ? json_dumps(json, JSON_ENCODE_ANY) : NULL;
}

static int print_json_rows(sqlite3_stmt *statement, char *const *keys)
{
    int columns = sqlite3_column_count(statement), r;
    bool first = true;

    putchar('[');
    while ((r = sqlite3_step(statement)) == SQLITE_ROW && !cli_output_broken()) {
        fputs(first ? "\n{" : ",\n{", stdout);
        first = false;
        for (int i = 0; i < columns; i++) {
            if (i)
                fputs(", ", stdout);
            text_put_raw(stdout, keys[i]);
            fputs(": ", stdout);
            print_json_cell(statement, i);
        }
        putchar('}');
    }
    puts(first ? "]" : "\n]");
    return r;
}

static int print_json(sqlite3_stmt *statement)
{
    int columns = sqlite3_column_count(statement), r = SQLITE_OK;
    AUTO_FREE char **keys = calloc((size_t)columns + 1, sizeof(*keys));

    if (!keys)
        return SQLITE_NOMEM;
    for (int i = 0; i < columns; i++) {
        keys[i] = json_key(statement, i);
        if (!keys[i])
            r = SQLITE_NOMEM;
    }
    if (r == SQLITE_OK)
        r = print_json_rows(statement, keys);
    for (int i = 0; i < columns; i++)
        free(keys[i]);
    return r;
}

static int print_table(sqlite3_stmt *statement)
{
    int columns = sqlite3_column_count(statement), r = SQLITE_NOMEM;
    AUTO_FREE char **titles = calloc((size_t)columns + 1, sizeof(*titles));
    struct table *table;

    if (!titles)
        return SQLITE_NOMEM;
    for (int i = 0; i < columns; i++)
        if (asprintf(&titles[i], "?%s", sqlite3_column_name(statement, i)) < 0)
            titles[i] = NULL;
    table = table_new(stdout, (const char *const *)titles, (size_t)columns, cli_colour());
    while (table && (r = sqlite3_step(statement)) == SQLITE_ROW && !cli_output_broken()) {
        for (int i = 0; i < columns; i++) {
            char *hex;

            table_cell(table, cell_text(statement, i, &hex));
            free(hex);
        }
    }
    for (int i = 0; i < columns; i++)
        free(titles[i]);
    if (table_free(table) < 0)
        return SQLITE_NOMEM;
    return r;
}

/* Each row as lines "column = value", as wide rows are best read, with an empty line between two. */
static int print_lines(sqlite3_stmt *statement)
{
    int columns = sqlite3_column_count(statement), width = 0, r;
    bool first = true;

    for (int i = 0; i < columns; i++) {
        int length = (int)strlen(sqlite3_column_name(statement, i));

        width = length > width ? length : width;
    }
    while ((r = sqlite3_step(statement)) == SQLITE_ROW && !cli_output_broken()) {
        fputs(first ? "" : "\n", stdout);
        first = false;
        for (int i = 0; i < columns; i++) {
            char *hex;

            text_print(stdout, "%*s = %s\n", width, sqlite3_column_name(statement, i),
                       cell_text(statement, i, &hex));
            free(hex);
        }
    }
    return r;
}

int sql_print(sqlite3_stmt *statement, enum sql_mode mode)
{
    switch (mode) {
    case SQL_JSON:
        return print_json(statement);
    case SQL_CSV:
        return print_csv(statement);
    case SQL_LINE:
        return print_lines(statement);
    case SQL_TABLE:
        break;
    }
    return print_table(statement);
}
