/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl query "SQL": one statement over the catalog, the virtual tables and the views, read only. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/table.h"

struct query_input {
    const char *sql;
    bool csv;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct query_input *input = state->input;

    switch (key) {
    case 'c':
        input->csv = true;
        return 0;
    case ARGP_KEY_ARG:
        if (input->sql)
            argp_error(state, "query takes one statement (quote it)");
        input->sql = arg;
        return 0;
    case ARGP_KEY_END:
        if (!input->sql)
            argp_error(state, "query needs an SQL statement");
        if (input->csv && cli.json)
            argp_error(state, "--csv and --json exclude each other");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {
    {"csv", 'c', 0, 0, "Print comma-separated values, with a line of titles", 0},
    {0},
};
static const struct argp_child children[] = {{&cli_common_argp, 0, NULL, 0}, {0}};
static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "SQL",
    .doc =
        "Run one SQL statement that reads the store.\v"
        "Tables: runs, processes, threads, functions, segments, losses, blind and more; events and calls "
        "are decoded while they are read; views: call_counts, call_graph, open_calls. docs/sql.md "
        "describes them. With --json the rows are an array of objects.",
    .children = children,
};

/* ------------------------------------------------------------------------------------------ preparing */

/* Pragmas that only tell something, when they are given no value. */
static bool pragma_reads(const char *name, const char *value)
{
    static const char *const asking[] = {
        "application_id", "compile_options", "database_list", "encoding",  "freelist_count", "function_list",
        "journal_mode",   "module_list",     "page_count",    "page_size", "schema_version", "user_version"};
    static const char *const inspecting[] = {
        "foreign_key_check", "foreign_key_list", "index_info", "index_list", "index_xinfo",
        "integrity_check",   "quick_check",      "table_info", "table_list", "table_xinfo"};

    for (size_t i = 0; i < ARRAY_SIZE(asking); i++)
        if (!value && !sqlite3_stricmp(name, asking[i]))
            return true;
    for (size_t i = 0; i < ARRAY_SIZE(inspecting); i++)
        if (!sqlite3_stricmp(name, inspecting[i]))
            return true;
    return false;
}

/* What sqlite3_stmt_readonly takes for harmless and is not: ATTACH makes a file. All that changes a table is
 * for sqlite3_stmt_readonly to tell, because this is also asked about what happens inside a virtual table. */
static int authorize(void *context, int action, const char *first, const char *second, const char *database,
                     const char *trigger)
{
    bool *refused = context;

    if (action == SQLITE_PRAGMA)
        *refused |= !pragma_reads(first, second);
    else
        *refused |= action == SQLITE_ATTACH || action == SQLITE_DETACH || action == SQLITE_TRANSACTION ||
                    action == SQLITE_SAVEPOINT;
    return *refused ? SQLITE_DENY : SQLITE_OK;
}

static int fail_query(struct error *err, sqlite3 *db)
{
    AUTO_FREE char *line = strdup(sqlite3_errmsg(db));

    for (char *at = line; at && *at; at++)
        if (*at == '\n')
            *at = ' ';
    return error_say(err, -EINVAL, "query: %s", line ? line : "out of memory");
}

static int prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret_statement, struct error *err)
{
    AUTO_STATEMENT sqlite3_stmt *statement = NULL, *second = NULL;
    const char *rest = NULL;
    bool refused = false;
    int r;

    sqlite3_set_authorizer(db, authorize, &refused);
    r = sqlite3_prepare_v2(db, sql, -1, &statement, &rest);
    if (r == SQLITE_OK)
        r = sqlite3_prepare_v2(db, rest, -1, &second, NULL);
    sqlite3_set_authorizer(db, NULL, NULL);
    if (refused || (statement && !sqlite3_stmt_readonly(statement)))
        return error_say(err, -EPERM,
                         "query: the statement would change something: query only reads "
                         "(tracectl rm removes runs)");
    if (r != SQLITE_OK)
        return fail_query(err, db);
    if (second)
        return error_say(err, -EINVAL, "query: more than one statement (give them one by one)");
    if (!statement)
        return error_say(err, -EINVAL, "query: no statement");
    *ret_statement = take_pointer(statement);
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

static void print_csv_field(const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, stdout);
        return;
    }
    putchar('"');
    for (; *text; text++) {
        if (*text == '"')
            putchar('"');
        putchar(*text);
    }
    putchar('"');
}

static int print_csv(sqlite3_stmt *statement)
{
    int columns = sqlite3_column_count(statement), r;

    for (int i = 0; i < columns; i++) {
        if (i)
            putchar(',');
        print_csv_field(sqlite3_column_name(statement, i));
    }
    putchar('\n');
    while ((r = sqlite3_step(statement)) == SQLITE_ROW && !cli_output_broken()) {
        for (int i = 0; i < columns; i++) {
            char *hex;

            if (i)
                putchar(',');
            print_csv_field(cell_text(statement, i, &hex));
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
        fputs(cli_text(statement, column), stdout);
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
            fputs(keys[i], stdout);
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

static int run(int argc, char **argv)
{
    struct query_input input = {0};
    AUTO_STORE struct tracestore *store = NULL;
    AUTO_STATEMENT sqlite3_stmt *statement = NULL;
    struct error err = {0};
    int r;

    cli_parse(&cmd_query, argc, argv, &input);
    if (cli_open_store(TRACESTORE_READ, &store, &err) < 0 ||
        prepare(tracestore_db(store), input.sql, &statement, &err) < 0)
        return cli_fail(&err);
    if (cli.json)
        r = print_json(statement);
    else if (input.csv)
        r = print_csv(statement);
    else
        r = print_table(statement);
    if (r != SQLITE_DONE && !cli_output_broken()) {
        fflush(stdout);
        fail_query(&err, tracestore_db(store));
        return cli_fail(&err);
    }
    return cli_finish(EXIT_NOTHING_FOUND);
}

const struct command cmd_query = {
    .name = "query",
    .summary = "run an SQL statement that reads the store",
    .argp = &argp,
    .run = run,
};
