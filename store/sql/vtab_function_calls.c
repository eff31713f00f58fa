/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * function_calls(run_id, thread_id, function_id, calls): how often each thread has called each function, one
 * row for both, from what segments and journal say about themselves. The sums are made here, thread by thread
 * in memory for the functions of one: GROUP BY over a row for each function of each segment takes ten times
 * as long. Rows come by run_id, thread_id and function_id.
 */
#include "base/error.h"
#include "store/segment/journal_counts.h"
#include "store/segment/segment_counts.h"
#include "store/sql/vtab_scan.h"
#include "store/sql/vtab_table.h"

enum { RUN, THREAD, FUNCTION, CALLS };

static const struct vtab_column columns[] = {{"run_id", RUN, TERM_RUN},
                                             {"thread_id", THREAD, TERM_THREAD},
                                             {"function_id", FUNCTION, TERM_FUNCTION},
                                             {0}};

struct calls_cursor {
    struct vtab_cursor head;
    sqlite3_stmt *threads; /* stepped to its end last: it holds the snapshot that all is read from */
    struct segment_counts segments;
    struct journal_counts journal; /* of the present run */
    struct census sums;            /* of the present thread */
    struct function_calls *functions;
    size_t count, capacity, at;
    int64_t run_id, thread_id;
    struct vtab_constraints constraints;
};

static int calls_connect(sqlite3 *db, void *context, int argc, const char *const *argv,
                         sqlite3_vtab **ret_table, char **ret_message)
{
    return vtab_connect(db,
                        "CREATE TABLE function_calls(run_id INTEGER, thread_id INTEGER, function_id INTEGER, "
                        "calls INTEGER)",
                        ret_table);
}

/* A constraint on the function leaves fewer rows, but no less to read: a join must not read all of it once
 * for each function. */
static int calls_best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
    int r = vtab_best_index(info, columns);

    if (r != SQLITE_OK)
        return r;
    info->estimatedRows = info->estimatedRows / 10000 + 1;
    info->estimatedCost = strstr(info->idxStr, "thread_id") ? 1e3
                          : strstr(info->idxStr, "run_id")  ? 3e4
                                                            : 3e5;
    return SQLITE_OK;
}

static int calls_open(sqlite3_vtab *table, sqlite3_vtab_cursor **ret_cursor)
{
    return vtab_open(sizeof(struct calls_cursor), ret_cursor);
}

/* ------------------------------------------------------------------------------------------ one thread */

static int compare_threads(const void *key, const void *element)
{
    int64_t left = *(const int64_t *)key, right = ((const struct journal_count *)element)->thread_id;

    return (left > right) - (left < right);
}

/* What the journal has of the present thread. */
static int add_journal(struct calls_cursor *cursor)
{
    const struct journal_count *first = cursor->journal.counts, *end = first + cursor->journal.count, *found;
    int code = 0;

    found = first == end
                ? NULL
                : bsearch(&cursor->thread_id, first, cursor->journal.count, sizeof(*first), compare_threads);
    if (!found)
        return 0;
    while (found > first && found[-1].thread_id == cursor->thread_id)
        found--;
    for (; found < end && found->thread_id == cursor->thread_id && !code; found++)
        code = census_add_calls(&cursor->sums, found->function, found->calls);
    return code;
}

/* Those with calls, of the functions asked for, in order. */
static int list_functions(struct calls_cursor *cursor)
{
    size_t kept = 0;

    if (array_reserve(&cursor->functions, &cursor->capacity, cursor->sums.count))
        return -ENOMEM;
    census_list(&cursor->sums, cursor->functions);
    for (size_t i = 0; i < cursor->sums.count; i++)
        if (cursor->functions[i].calls &&
            vtab_wants_function(&cursor->constraints, cursor->functions[i].function))
            cursor->functions[kept++] = cursor->functions[i];
    cursor->count = kept;
    cursor->at = 0;
    return 0;
}

/* Sums up the next thread. 1: there is none. */
static int next_thread(struct calls_cursor *cursor, struct error *err)
{
    sqlite3 *db = vtab_db(cursor->head.base.pVtab);
    int result = db_row(cursor->threads, "ii"), code = 0;
    int64_t run_id;

    if (result == SQLITE_DONE)
        return 1;
    if (result != SQLITE_ROW)
        return db_fail(db, err, "cannot read the threads");
    run_id = sqlite3_column_int64(cursor->threads, 0);
    cursor->thread_id = sqlite3_column_int64(cursor->threads, 1);
    if (run_id != cursor->run_id)
        code = journal_counts_read(&cursor->journal, db, run_id, err);
    cursor->run_id = run_id;
    census_clear(&cursor->sums);
    segment_counts_select(&cursor->segments, cursor->thread_id);
    if (!code)
        code = segment_counts_sum(&cursor->segments, &cursor->sums, err);
    if (!code && (add_journal(cursor) || list_functions(cursor)))
        code = error_no_memory(err);
    return code;
}

static int calls_next(sqlite3_vtab_cursor *base)
{
    struct calls_cursor *cursor = (struct calls_cursor *)base;
    struct error err = {0};
    int code = 0;

    cursor->at++;
    cursor->head.row++;
    while (!code && cursor->at >= cursor->count)
        code = next_thread(cursor, &err);
    cursor->head.end = code != 0;
    return code < 0 ? vtab_fail(base->pVtab, code, &err) : SQLITE_OK;
}

/* ------------------------------------------------------------------------------------------ the table */

static void cursor_clear(struct calls_cursor *cursor)
{
    sqlite3_finalize(cursor->threads);
    vtab_constraints_release(&cursor->constraints);
    segment_counts_close(&cursor->segments);
    cursor->threads = NULL;
    cursor->run_id = 0;
    cursor->at = cursor->count = cursor->journal.count = 0;
    cursor->head.row = 0;
    cursor->head.end = true;
}

static int calls_close(sqlite3_vtab_cursor *base)
{
    struct calls_cursor *cursor = (struct calls_cursor *)base;

    cursor_clear(cursor);
    journal_counts_release(&cursor->journal);
    census_release(&cursor->sums);
    free(cursor->functions);
    sqlite3_free(cursor);
    return SQLITE_OK;
}

static int prepare(struct calls_cursor *cursor, const struct vtab_constraints *constraints, struct error *err)
{
#define THREADS "SELECT run_id, thread_id FROM main.threads"
    sqlite3 *db = vtab_db(cursor->head.base.pVtab);
    int code =
        db_prepare(db,
                   constraints->has_thread ? THREADS " WHERE thread_id = ?2 AND (?1 < 0 OR run_id = ?1)"
                   : constraints->has_run  ? THREADS " WHERE run_id = ?1 ORDER BY thread_id"
                                           : THREADS " ORDER BY run_id, thread_id",
                   "cannot read the threads", &cursor->threads, err);

    if (!code)
        code = segment_counts_open(&cursor->segments, db, COUNTS_OF_THREAD, err);
    if (code)
        return code;
    db_bind(cursor->threads, "ii", constraints->has_run ? constraints->run_id : -1, constraints->thread_id);
    return 0;
}

static int calls_filter(sqlite3_vtab_cursor *base, int index_number, const char *index_text, int argc,
                        sqlite3_value **argv)
{
    struct calls_cursor *cursor = (struct calls_cursor *)base;
    struct error err = {0};
    int code;

    cursor_clear(cursor);
    code = vtab_read_constraints(index_text, argc, argv, &cursor->constraints);
    if (!code && cursor->constraints.nothing)
        return SQLITE_OK;
    if (!code)
        code = prepare(cursor, &cursor->constraints, &err);
    return code ? vtab_fail(base->pVtab, code, &err) : calls_next(base);
}

static int calls_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    const struct calls_cursor *cursor = (struct calls_cursor *)base;
    const struct function_calls *function = &cursor->functions[cursor->at];

    sqlite3_result_int64(context, column == RUN        ? cursor->run_id
                                  : column == THREAD   ? cursor->thread_id
                                  : column == FUNCTION ? function->function
                                                       : (sqlite3_int64)function->calls);
    return SQLITE_OK;
}

const sqlite3_module vtab_function_calls_module = VTAB_MODULE(calls);
