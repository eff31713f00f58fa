/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Runs, and what their threads and functions are. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"
#include "store/bytes/bytes.h"
#include "store/db/aliases.h"
#include "store/db/store.h"
#include "store/segment/journal.h"

static const char what[] = "cannot read the catalog";

/* ------------------------------------------------------------------------------------------ runs */

#define RUN_COLUMNS \
    "SELECT run_id, name, command, host, kernel, options, tool_version, started_ns, ended_ns, exit_status," \
    " ended_ns IS NULL OR EXISTS (SELECT 1 FROM losses l WHERE l.run_id = runs.run_id" \
    " AND l.cause IN ('unfinished', 'deleted in part')) FROM runs"

void tracestore_run_release(struct tracestore_run *run)
{
    free(run->name);
    free(run->command);
    free(run->host);
    free(run->kernel);
    free(run->options);
    free(run->tool_version);
    *run = (struct tracestore_run){0};
}

static int read_run(sqlite3_stmt *row, struct tracestore_run *ret_run, struct error *err)
{
    struct tracestore_run run = {
        .run_id = sqlite3_column_int64(row, 0),
        .name = db_text(row, 1),
        .command = db_text(row, 2),
        .host = db_text(row, 3),
        .kernel = db_text(row, 4),
        .options = db_text(row, 5),
        .tool_version = db_text(row, 6),
        .started_ns = (uint64_t)sqlite3_column_int64(row, 7),
        .ended_ns = (uint64_t)sqlite3_column_int64(row, 8),
        .unfinished = sqlite3_column_int(row, 10),
        .has_exit_status = sqlite3_column_type(row, 9) != SQLITE_NULL,
        .exit_status = sqlite3_column_int(row, 9),
    };

    if (!run.name || !run.command || !run.host || !run.kernel || !run.options || !run.tool_version) {
        tracestore_run_release(&run);
        return error_no_memory(err);
    }
    *ret_run = run;
    return 0;
}

/* 1: no such run. */
static int select_run(struct tracestore *store, const char *sql, const char *name, int64_t number,
                      struct tracestore_run *ret_run, struct error *err)
{
    AUTO_STATEMENT *row = NULL;
    int result, code = db_prepare(store->db, sql, what, &row, err);

    if (code)
        return code;
    db_bind(row, "ti", name, number);
    result = db_row(row, "ittttttnNIi");
    if (result == SQLITE_ROW)
        return read_run(row, ret_run, err);
    return result == SQLITE_DONE ? 1 : db_fail(store->db, err, what);
}

static bool is_number(const char *text, int64_t *ret_number)
{
    uint64_t number;

    if (!number_parse_count(text, &number) || number > INT64_MAX)
        return false;
    *ret_number = (int64_t)number;
    return true;
}

int tracestore_find_run(struct tracestore *store, const char *name, struct tracestore_run *ret_run,
                        struct error *err)
{
    int64_t number = 0;
    int code = 1;

    if (strcmp(name, "latest") == 0 || (strncmp(name, "latest~", 7) == 0 && is_number(name + 7, &number)))
        code = select_run(store, RUN_COLUMNS " WHERE ?1 NOTNULL ORDER BY run_id DESC LIMIT 1 OFFSET ?2", name,
                          number, ret_run, err);
    else if (is_number(name, &number))
        code = select_run(store, RUN_COLUMNS " WHERE ?1 NOTNULL AND run_id = ?2", name, number, ret_run, err);
    if (code == 1)
        code = select_run(store, RUN_COLUMNS " WHERE name = ?1 AND ?2 NOTNULL ORDER BY run_id DESC LIMIT 1",
                          name, number, ret_run, err);
    if (code == 1)
        return error_say(err, -ENOENT,
                         "cannot find run %s in store %s: no such run (list them with 'tracectl runs')", name,
                         store->path);
    return code;
}

/* ------------------------------------------------------------------------------------------ threads */

struct thread_list {
    struct tracestore_thread *threads;
    size_t count, capacity;
};

void tracestore_threads_free(struct tracestore_thread *threads, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(threads[i].label);
        free(threads[i].name);
    }
    free(threads);
}

static void thread_list_release(struct thread_list *list)
{
    tracestore_threads_free(list->threads, list->count);
}

static int read_thread(sqlite3_stmt *row, struct thread_list *list, struct error *err)
{
    const char *returns = (const char *)sqlite3_column_text(row, 8);
    struct tracestore_thread thread = {
        .thread_id = sqlite3_column_int64(row, 0),
        .run_id = sqlite3_column_int64(row, 1),
        .process_id = sqlite3_column_int64(row, 2),
        .tid = (int32_t)sqlite3_column_int64(row, 3),
        .started_ns = (uint64_t)sqlite3_column_int64(row, 6),
        .ended_ns = (uint64_t)sqlite3_column_int64(row, 7),
        .returns = trace_returns_parse(returns ? returns : ""),
        .events = (uint64_t)sqlite3_column_int64(row, 9),
    };

    if (array_reserve(&list->threads, &list->capacity, list->count + 1))
        return error_no_memory(err);
    thread.label = db_text(row, 4);
    thread.name = db_text(row, 5);
    list->threads[list->count++] = thread;
    return thread.label && thread.name ? 0 : error_no_memory(err);
}

/* Numbers within labels compare as numbers: 2.10 comes after 2.9. */
static int compare_labels(const void *a, const void *b)
{
    const struct tracestore_thread *left = a, *right = b;
    int order = strverscmp(left->label, right->label);

    return order ? order : (left->thread_id > right->thread_id) - (left->thread_id < right->thread_id);
}

static int compare_ids(const void *a, const void *b)
{
    const struct tracestore_thread *left = a, *right = b;

    return (left->thread_id > right->thread_id) - (left->thread_id < right->thread_id);
}

static int add_tail_events(void *context, int64_t thread_id, const struct journal_tail *tail)
{
    struct thread_list *list = context;
    const struct tracestore_thread key = {.thread_id = thread_id};
    struct tracestore_thread *found =
        list->count ? bsearch(&key, list->threads, list->count, sizeof(key), compare_ids) : NULL;

    if (found)
        found->events += tail->event_count;
    return 0;
}

static void drop_empty(struct thread_list *list)
{
    size_t kept = 0;

    for (size_t i = 0; i < list->count; i++) {
        if (list->threads[i].events) {
            list->threads[kept++] = list->threads[i];
        } else {
            free(list->threads[i].label);
            free(list->threads[i].name);
        }
    }
    list->count = kept;
}

static int read_threads(struct tracestore *store, int64_t run_id, struct thread_list *list, struct error *err)
{
    AUTO_STATEMENT *row = NULL;
    int result = SQLITE_ROW,
        code = db_prepare(
            store->db,
            "SELECT thread_id, run_id, process_id, tid, label, name, started_ns, ended_ns, returns,"
            " (SELECT sum(event_count) FROM segments s WHERE s.thread_id = t.thread_id)"
            " FROM threads t WHERE run_id = ?1 ORDER BY thread_id",
            what, &row, err);

    if (code)
        return code;
    db_bind(row, "i", run_id);
    while (!code && (result = db_row(row, "iiiittnNtN")) == SQLITE_ROW)
        code = read_thread(row, list, err);
    return result == SQLITE_ROW || result == SQLITE_DONE ? code : db_fail(store->db, err, what);
}

int tracestore_threads(struct tracestore *store, int64_t run_id, struct tracestore_thread **ret_threads,
                       size_t *ret_count, struct error *err)
{
    CLEANUP(thread_list_release) struct thread_list list = {0};
    int code = read_threads(store, run_id, &list, err);

    if (!code)
        code = journal_visit_tails(store->db, run_id, add_tail_events, &list, err);
    if (code)
        return code;
    drop_empty(&list);
    if (list.count)
        qsort(list.threads, list.count, sizeof(*list.threads), compare_labels);
    *ret_threads = list.threads;
    *ret_count = list.count;
    list = (struct thread_list){0};
    return 0;
}

/* ------------------------------------------------------------------------------------------ functions */

struct function_list {
    struct tracestore_function *functions;
    size_t count, capacity;
};

void tracestore_functions_free(struct tracestore_function *functions, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(functions[i].name);
        free(functions[i].demangled);
        free(functions[i].image);
        free(functions[i].file);
        aliases_free(functions[i].aliases);
    }
    free(functions);
}

static void function_list_release(struct function_list *list)
{
    tracestore_functions_free(list->functions, list->count);
}

static int read_function(sqlite3_stmt *row, uint32_t function_id, struct function_list *list,
                         struct error *err)
{
    struct tracestore_function function = {.function_id = function_id};
    int split;

    if (array_reserve(&list->functions, &list->capacity, list->count + 1))
        return error_no_memory(err);
    function.name = db_text(row, 0);
    function.demangled = db_text(row, 1);
    function.image = db_text(row, 2);
    function.file = db_text(row, 3);
    function.line = sqlite3_column_int(row, 4);
    split = aliases_split((const char *)sqlite3_column_text(row, 5), &function.aliases);
    list->functions[list->count++] = function;
    return !split && function.name && function.demangled && function.image && function.file
               ? 0
               : error_no_memory(err);
}

int tracestore_functions(struct tracestore *store, int64_t run_id, struct tracestore_function **ret_functions,
                         size_t *ret_count, struct error *err)
{
    CLEANUP(function_list_release) struct function_list list = {0};
    AUTO_STATEMENT *row = NULL;
    AUTO_FREE uint32_t *ids = NULL;
    size_t count = 0;
    int code = store_called_functions(store->db, run_id, &ids, &count, err);

    if (!code)
        code = db_prepare(store->db,
                          "SELECT f.name, coalesce(f.demangled, f.name), i.path, f.file, f.line, f.aliases"
                          " FROM functions f JOIN images i USING (image_id) WHERE function_id = ?1",
                          what, &row, err);
    for (size_t i = 0; i < count && !code; i++) {
        int result;

        db_bind(row, "i", (int64_t)ids[i]);
        result = db_row(row, "tttTIT");
        if (result == SQLITE_ROW)
            code = read_function(row, ids[i], &list, err);
        else if (result != SQLITE_DONE)
            code = db_fail(store->db, err, what);
    }
    if (code)
        return code;
    *ret_functions = list.functions;
    *ret_count = list.count;
    list = (struct function_list){0};
    return 0;
}
