/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Rows of tables, whose ids become those of the store that they are added to. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "store/db/column_types.h"
#include "store/merge/merge.h"

static const char what[] = "cannot merge";

/*
 * A table, and what becomes of each of its columns, one letter each:
 *   = the value itself    R the run's id    i image, f function, s call site, u usage, p process, t thread: the id of the
 *   row that was copied    P a process's, where it is one; else NULL
 * `key`: the first column is the row's own id, of that kind; it is not inserted but given.
 */
struct table {
    const char *name, *columns, *letters;
    const char *rows; /* which ones, in SQL; ?1 is a parameter of copy_table() */
    int key;          /* enum merge_id, -1: it has none */
    const char *
        find; /* SQL: the id of the row, where it is there already; its parameters are the inserted columns */
    const char *insert; /* NULL: "INSERT INTO NAME (columns) VALUES (?1, ...)" */
};

static enum merge_id kind_of(char letter)
{
    switch (letter) {
    case 'i':
        return MERGE_IMAGE;
    case 'f':
        return MERGE_FUNCTION;
    case 's':
        return MERGE_SITE;
    case 'u':
        return MERGE_USAGE;
    case 't':
        return MERGE_THREAD;
    default:
        return MERGE_PROCESS;
    }
}

/* ------------------------------------------------------------------------------------------ one row */

/* Binds a column by its letter to parameter `parameter`. */
static int bind_column(struct merge *merge, sqlite3_stmt *insert, int parameter, char letter,
                       sqlite3_value *value)
{
    int64_t id;
    int code;

    if (letter == 'R') {
        sqlite3_bind_int64(insert, parameter, merge->to_run);
        return 0;
    }
    if (letter == '=' || sqlite3_value_type(value) == SQLITE_NULL) {
        sqlite3_bind_value(insert, parameter, value);
        return 0;
    }
    if (letter == 'P') {
        id = id_map_number(&merge->ids[MERGE_PROCESS], sqlite3_value_int64(value));
        code = 0;
    } else {
        code = merge_id_of(merge, kind_of(letter), sqlite3_value_int64(value), &id);
    }
    if (!code && id)
        sqlite3_bind_int64(insert, parameter, id);
    else
        sqlite3_bind_null(insert, parameter);
    return code;
}

/* The id in the first row that a bound statement gives, 0: none. */
static int find_id(struct merge *merge, sqlite3_stmt *find, int64_t *ret_id)
{
    int result = sqlite3_step(find);

    *ret_id = result == SQLITE_ROW ? sqlite3_column_int64(find, 0) : 0;
    return result == SQLITE_ROW || result == SQLITE_DONE ? 0 : db_fail(merge->to, merge->err, what);
}

/* A table's statements. */
struct statements {
    sqlite3_stmt *rows, *find, *insert; /* `find`: NULL where all rows are new */
};

/* All columns from the `first` on. */
static int bind_row(struct merge *merge, const struct table *table, sqlite3_stmt *row, int first,
                    sqlite3_stmt *statement)
{
    int code = 0;

    sqlite3_reset(statement);
    for (int i = first; table->letters[i] && !code; i++)
        code = bind_column(merge, statement, i - first + 1, table->letters[i], sqlite3_column_value(row, i));
    return code;
}

/* `first`: the first column that `find` and `insert` have as a parameter. */
static int copy_row(struct merge *merge, const struct table *table, const struct statements *statements,
                    int first)
{
    int64_t id = 0;
    int code = 0;

    if (statements->find)
        code = bind_row(merge, table, statements->rows, first, statements->find);
    if (!code && statements->find)
        code = find_id(merge, statements->find, &id);
    if (!code && !id) {
        code = bind_row(merge, table, statements->rows, first, statements->insert);
        if (!code)
            code = db_step(merge->to, statements->insert, what, merge->err);
        id = sqlite3_last_insert_rowid(merge->to);
    }
    if (code || table->key < 0)
        return code;
    return id_map_set(&merge->ids[table->key], sqlite3_column_int64(statements->rows, 0), id)
               ? error_no_memory(merge->err)
               : 0;
}

/* ------------------------------------------------------------------------------------------ one table */

static int prepare_rows(struct merge *merge, const struct table *table, sqlite3_stmt **ret_rows)
{
    char sql[768];

    snprintf(sql, sizeof(sql), "SELECT %s FROM main.%s WHERE %s", table->columns, table->name, table->rows);
    return db_prepare(merge->from, sql, what, ret_rows, merge->err);
}

static int prepare_insert(struct merge *merge, const struct table *table, sqlite3_stmt **ret_insert)
{
    const char *columns = table->key >= 0 ? strchr(table->columns, ',') + 1 : table->columns;
    char sql[640];
    size_t length;
    int column = 1;

    if (table->insert)
        return db_prepare(merge->to, table->insert, what, ret_insert, merge->err);
    length = (size_t)snprintf(sql, sizeof(sql), "INSERT INTO main.%s (%s) VALUES (?1", table->name, columns);
    for (const char *c = columns; *c; c++)
        if (*c == ',')
            length += (size_t)snprintf(sql + length, sizeof(sql) - length, ", ?%d", ++column);
    snprintf(sql + length, sizeof(sql) - length, ")");
    return db_prepare(merge->to, sql, what, ret_insert, merge->err);
}

static int copy_rows(struct merge *merge, const struct table *table, const struct statements *statements,
                     const char *types)
{
    int result = SQLITE_DONE, code = 0;

    while (!code && (result = db_row(statements->rows, types)) == SQLITE_ROW)
        code = copy_row(merge, table, statements, table->key >= 0);
    return code || result == SQLITE_DONE ? code : db_fail(merge->from, merge->err, what);
}

/* `parameter`: of table->rows, where that has one. */
static int copy_table(struct merge *merge, const struct table *table, int64_t parameter)
{
    AUTO_FREE char *types = column_types_of(merge->from, table->name, table->columns);
    struct statements statements = {0};
    int code = types ? prepare_rows(merge, table, &statements.rows) : error_no_memory(merge->err);

    if (!code)
        code = prepare_insert(merge, table, &statements.insert);
    if (!code && sqlite3_bind_parameter_count(statements.rows))
        db_bind(statements.rows, "i", parameter);
    if (!code)
        code = copy_rows(merge, table, &statements, types);
    sqlite3_finalize(statements.rows);
    sqlite3_finalize(statements.find);
    sqlite3_finalize(statements.insert);
    return code;
}

static int copy_tables(struct merge *merge, const struct table *tables, size_t count, int64_t parameter)
{
    int code = 0;

    for (size_t i = 0; i < count && !code; i++)
        code = copy_table(merge, &tables[i], parameter);
    return code;
}

/* ------------------------------------------------------------------------------------------ what runs share */

/* A row keeps its id where that is free, and not so large that it would use up those of later rows. */
#define SAME_ID(table, id) \
    "CASE WHEN ?1 < 0x1000000 AND NOT EXISTS (SELECT 1 FROM main." table " WHERE " id " = ?1) THEN ?1 END"

/* Unlike in other tables the parameters of `find` and `insert` are all columns, the first one included. */
static const struct table shared_tables[MERGE_SHARED] = {
    [MERGE_IMAGE] = {"images", "image_id, path, build_id, kind", "====", "image_id = ?1", MERGE_IMAGE,
                     "SELECT image_id FROM main.images WHERE path = ?2 AND build_id = ?3 AND kind = ?4",
                     "INSERT INTO main.images (image_id, path, build_id, kind)"
                     " VALUES (" SAME_ID("images", "image_id") ", ?2, ?3, ?4)"},
    [MERGE_FUNCTION] =
        {"functions", "function_id, image_id, name, demangled, address, size, file, line, aliases",
         "=i=======", "function_id = ?1", MERGE_FUNCTION,
         "SELECT function_id FROM main.functions WHERE name_hash = name_hash(?3) AND image_id = ?2"
         " AND address = ?5 AND name = ?3 AND demangled IS ?4",
         "INSERT INTO main.functions (function_id, image_id, name, demangled, address, size, file, line,"
         " aliases, name_hash) VALUES (" SAME_ID(
             "functions", "function_id") ", ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, name_hash(?3))"},
    [MERGE_SITE] = {"call_sites", "site_id, image_id, address, function_id, file, line",
                    "=i=f==", "site_id = ?1", MERGE_SITE,
                    "SELECT site_id FROM main.call_sites WHERE image_id = ?2 AND address = ?3",
                    "INSERT INTO main.call_sites (site_id, image_id, address, function_id, file, line)"
                    " VALUES (" SAME_ID("call_sites", "site_id") ", ?2, ?3, ?4, ?5, ?6)"},
};

static const char *const damages[MERGE_IDS] = {
    [MERGE_IMAGE] = "an image that is not there",    [MERGE_FUNCTION] = "a function that is not there",
    [MERGE_SITE] = "a call site that is not there",  [MERGE_USAGE] = "a usage that is not there",
    [MERGE_PROCESS] = "a process that is not there", [MERGE_THREAD] = "a thread that is not there"};

static int prepare_shared(struct merge *merge, const struct table *table, struct merge_shared *shared)
{
    int code;

    if (shared->types)
        return 0;
    code = prepare_rows(merge, table, &shared->row);
    if (!code)
        code = db_prepare(merge->to, table->find, what, &shared->find, merge->err);
    if (!code)
        code = db_prepare(merge->to, table->insert, what, &shared->insert, merge->err);
    if (code)
        return code;
    shared->types = column_types_of(merge->from, table->name, table->columns);
    return shared->types ? 0 : error_no_memory(merge->err);
}

/* The row that `shared->row` stands at. */
static int add_shared(struct merge *merge, const struct table *table, struct merge_shared *shared)
{
    const struct statements statements = {shared->row, shared->find, shared->insert};
    int64_t before = sqlite3_column_int64(shared->row, 0), now;
    enum number_kind number = table->key == MERGE_SITE ? NUMBER_SITE : NUMBER_FUNCTION;
    int code = copy_row(merge, table, &statements, 0);

    now = id_map_number(&merge->ids[table->key], before);
    if (code || table->key == MERGE_IMAGE || now == before)
        return code;
    return numbering_set(&merge->numberings[number], before, now) ? error_no_memory(merge->err) : 0;
}

static int take_shared(struct merge *merge, enum merge_id kind, int64_t id)
{
    const struct table *table = &shared_tables[kind];
    struct merge_shared *shared = &merge->shared[kind];
    int result, code = prepare_shared(merge, table, shared);

    if (code)
        return code;
    db_bind(shared->row, "i", id);
    result = db_row(shared->row, shared->types);
    if (result == SQLITE_ROW)
        code = add_shared(merge, table, shared);
    else
        code = result == SQLITE_DONE ? merge_damaged(merge, damages[kind])
                                     : db_fail(merge->from, merge->err, what);
    sqlite3_reset(shared->row);
    return code;
}

int merge_id_of(struct merge *merge, enum merge_id kind, int64_t id, int64_t *ret_id)
{
    int code = 0;

    *ret_id = id_map_number(&merge->ids[kind], id);
    if (!*ret_id && kind < MERGE_SHARED) {
        code = take_shared(merge, kind, id);
        *ret_id = id_map_number(&merge->ids[kind], id);
    }
    return code || *ret_id ? code : merge_damaged(merge, damages[kind]);
}

void merge_release_shared(struct merge *merge)
{
    for (int kind = 0; kind < MERGE_SHARED; kind++) {
        sqlite3_finalize(merge->shared[kind].row);
        sqlite3_finalize(merge->shared[kind].find);
        sqlite3_finalize(merge->shared[kind].insert);
        free(merge->shared[kind].types);
    }
}

int merge_copy_plans(struct merge *merge)
{
    static const struct table plans = {"budget_plans",
                                       "build_id, address, calls_per_second",
                                       "===",
                                       "1",
                                       -1,
                                       NULL,
                                       "INSERT OR IGNORE INTO main.budget_plans VALUES (?1, ?2, ?3)"};

    return copy_table(merge, &plans, 0);
}

/* An image's usages are written all at once: those of an image that has some are the same ones. */
static int copy_usages(struct merge *merge)
{
    static const struct table tables[] = {
        {"go_usages", "usage_id, image_id, function, file, line, operation, standard, blocks",
         "=i======", "image_id = ?1 ORDER BY usage_id", MERGE_USAGE, NULL, NULL},
        {"go_usage_cases", "usage_id, number, line, sends",
         "u===", "usage_id IN (SELECT usage_id FROM main.go_usages WHERE image_id = ?1)", -1, NULL, NULL},
    };
    AUTO_STATEMENT *row = NULL;
    int result = SQLITE_DONE, code = db_prepare(merge->from, "SELECT DISTINCT image_id FROM main.go_usages",
                                                what, &row, merge->err);

    while (!code && (result = db_row(row, "i")) == SQLITE_ROW) {
        int64_t image = sqlite3_column_int64(row, 0), now, known = 0;

        code = merge_id_of(merge, MERGE_IMAGE, image, &now);
        if (!code)
            code = db_number(merge->to, what, &known, merge->err,
                             "SELECT count(*) FROM main.go_usages WHERE image_id = ?1", "i", now);
        if (!code && !known)
            code = copy_tables(merge, tables, ARRAY_SIZE(tables), image);
    }
    return code || result == SQLITE_DONE ? code : db_fail(merge->from, merge->err, what);
}

/* ------------------------------------------------------------------------------------------ a run */

#define OF_RUN "run_id = ?1"
#define OF_RUNS_PROCESSES "process_id IN (SELECT process_id FROM main.processes WHERE run_id = ?1)"

int merge_copy_run(struct merge *merge)
{
    static const struct table run = {
        "runs",
        "name, command, host, kernel, started_ns, ended_ns, exit_status, options, tool_version, recorder",
        "==========",
        OF_RUN,
        -1,
        NULL,
        NULL};
    static const struct table tables[] = {
        {"tags", "run_id, key, value", "R==", OF_RUN, -1, NULL, NULL},
        {"processes",
         "process_id, run_id, pid, parent_process_id, rank, exe, argv, started_ns, ended_ns, exit_status",
         "=R=P======", OF_RUN " ORDER BY process_id", MERGE_PROCESS, NULL, NULL},
        {"threads", "thread_id, run_id, process_id, tid, label, name, started_ns, ended_ns, returns",
         "=Rp======", OF_RUN " ORDER BY thread_id", MERGE_THREAD, NULL, NULL},
        {"losses", "run_id, thread_id, seq, ns, count, cause, calls, returns",
         "Rt======", OF_RUN " ORDER BY loss_id", -1, NULL, NULL},
        {"blind", "run_id, function_id, from_ns, to_ns, cause, calls_per_second, calls_missed",
         "Rf=====", OF_RUN " ORDER BY rowid", -1, NULL, NULL},
        {"go_programs", "process_id, run_id, image_id, version, operations, from_start, from_ns",
         "pRi====", OF_RUN, -1, NULL, NULL},
        {"go_wait_reasons", "process_id, number, name", "p==", OF_RUNS_PROCESSES, -1, NULL, NULL},
        {"sync_processes", "process_id, run_id, from_ns, from_start, library, why_not", "pR====", OF_RUN, -1,
         NULL, NULL},
        {"sync_channels", "run_id, channel, kind, name, local, remote, device, inode, net, from_start",
         "R=========", OF_RUN, -1, NULL, NULL},
        {"sync_functions", "run_id, number, role, name", "R===", OF_RUN, -1, NULL, NULL},
        {"end_nodes",
         "run_id, node, parent, image, build_id, function, file, line, address, entry, flags, depth",
         "R===========", OF_RUN, -1, NULL, NULL},
        {"end_iterations", "run_id, node, depth, finished", "R===", OF_RUN, -1, NULL, NULL},
        {"end_threads", "run_id, thread, pid, tid, rank, label, name, state, flags, node",
         "R=========", OF_RUN, -1, NULL, NULL},
    };
    int code = copy_table(merge, &run, merge->from_run);

    merge->to_run = sqlite3_last_insert_rowid(merge->to);
    if (!code)
        code = copy_tables(merge, tables, ARRAY_SIZE(tables), merge->from_run);
    return code ? code : copy_usages(merge);
}
