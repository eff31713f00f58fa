/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From a window into a store: the run. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/error.h"
#include "store/writer/window_copy.h"

static const char what[] = "cannot commit the window";

/* Calls `take` with each row that the query about the run gives. */
static int each_row(struct window_copy *commit, const char *sql, const char *types,
                    int (*take)(struct window_copy *commit, sqlite3_stmt *row))
{
    AUTO_STATEMENT *row = NULL;
    int result = SQLITE_ROW, code = db_prepare(commit->db, sql, what, &row, commit->err);

    if (code)
        return code;
    db_bind(row, "i", commit->run_id);
    while (!code && (result = db_row(row, types)) == SQLITE_ROW)
        code = take(commit, row);
    return code || result == SQLITE_DONE ? code : db_fail(commit->db, commit->err, what);
}

#define PROCESSES_SQL \
    "SELECT process_id, pid, parent_process_id, coalesce(rank, -1), exe, argv, started_ns, ended_ns," \
    " coalesce(exit_status, -1) FROM processes WHERE run_id = ?1 ORDER BY process_id"

static int copy_process(struct window_copy *commit, sqlite3_stmt *row)
{
    const struct trace_process_description process = {
        .pid = sqlite3_column_int(row, 1),
        .parent_process_id = id_map_number(&commit->processes, sqlite3_column_int64(row, 2)),
        .rank = sqlite3_column_int(row, 3),
        .exe = window_text(row, 4),
        .argv = window_text(row, 5),
        .started_ns = (uint64_t)sqlite3_column_int64(row, 6),
    };
    int64_t number;
    int code = trace_writer_process(commit->writer, &process, &number, commit->err);

    if (!code && id_map_set(&commit->processes, sqlite3_column_int64(row, 0), number))
        code = error_no_memory(commit->err);
    if (code || sqlite3_column_type(row, 7) == SQLITE_NULL)
        return code;
    return trace_writer_process_end(commit->writer, number, (uint64_t)sqlite3_column_int64(row, 7),
                                    sqlite3_column_int(row, 8), commit->err);
}

static int compare_threads(const void *key, const void *item)
{
    const int64_t id = *(const int64_t *)key;
    const struct moved_thread *moved = item;

    return (id > moved->thread_id) - (id < moved->thread_id);
}

#define LOSSES_SQL \
    "SELECT thread_id, coalesce(seq, -1), ns, count, coalesce(calls, -1), coalesce(returns, -1), cause" \
    " FROM losses WHERE run_id = ?1 AND cause <> 'unfinished' ORDER BY loss_id"

static int copy_loss(struct window_copy *commit, sqlite3_stmt *row)
{
    int64_t thread_id = sqlite3_column_int64(row, 0), seq = sqlite3_column_int64(row, 1), thread = 0;
    const struct lost_events lost = {.count = (uint64_t)sqlite3_column_int64(row, 3),
                                     .calls = sqlite3_column_int64(row, 4),
                                     .returns = sqlite3_column_int64(row, 5)};

    if (thread_id) {
        const struct moved_thread *moved = commit->thread_count
                                               ? bsearch(&thread_id, commit->threads, commit->thread_count,
                                                         sizeof(*commit->threads), compare_threads)
                                               : NULL;

        if (!moved || (seq >= 0 && (uint64_t)seq < moved->first_seq))
            return 0; /* it is of before the window */
        thread = moved->thread->number;
        seq = seq < 0 ? seq : (int64_t)((uint64_t)seq - moved->first_seq + moved->head);
    }
    return writer_queue_loss(commit->writer, thread, seq, (uint64_t)sqlite3_column_int64(row, 2), &lost,
                             window_text(row, 6))
               ? error_no_memory(commit->err)
               : 0;
}

#define BLIND_SQL \
    "SELECT function_id, from_ns, to_ns, cause, calls_per_second, coalesce(calls_missed, -1) FROM blind" \
    " WHERE run_id = ?1 ORDER BY rowid"

/* How many calls were missed in the window is not known of a function that was not seen before it already. */
static int copy_blind(struct window_copy *commit, sqlite3_stmt *row)
{
    uint32_t id = (uint32_t)sqlite3_column_int64(row, 0), function;
    uint64_t from_ns = (uint64_t)sqlite3_column_int64(row, 1);
    uint64_t to_ns = (uint64_t)sqlite3_column_int64(row, 2);
    int64_t missed = from_ns >= commit->from_ns ? sqlite3_column_int64(row, 5) : -1;
    double rate = sqlite3_column_double(row, 4);
    int code = window_take_function(commit, id);

    if (code)
        return code;
    function = (uint32_t)id_map_number(&commit->functions, id);
    code =
        trace_writer_blind(commit->writer, function, from_ns, to_ns, window_text(row, 3), rate, commit->err);
    return code || missed < 0
               ? code
               : trace_writer_blind_end(commit->writer, function, from_ns, to_ns, missed, rate, commit->err);
}

static int copy_tag(struct window_copy *commit, sqlite3_stmt *row)
{
    return trace_writer_tag(commit->writer, window_text(row, 0), window_text(row, 1), commit->err);
}

/* Notes of binaries are of no run. */
static int copy_plan(struct window_copy *commit, sqlite3_stmt *row)
{
    return trace_writer_budget_plan(commit->writer, window_text(row, 0),
                                    (uint64_t)sqlite3_column_int64(row, 1), sqlite3_column_double(row, 2),
                                    commit->err);
}

static int copy_catalog(struct window_copy *commit)
{
    int code = each_row(commit,
                        "SELECT key, value FROM tags WHERE run_id = ?1"
                        " AND key NOT IN ('" WINDOW_FROM_TAG "', '" WINDOW_CUT_TAG "')",
                        "tt", copy_tag);

    if (!code)
        code = each_row(commit, PROCESSES_SQL, "iiIittnNi", copy_process);
    if (!code)
        code = each_row(commit, WINDOW_THREADS_SQL, "iiittnNt", window_copy_thread);
    if (!code)
        code = each_row(commit, LOSSES_SQL, "IinNiit", copy_loss);
    if (!code)
        code = each_row(commit, BLIND_SQL, "inNtDi", copy_blind);
    if (!code)
        code =
            each_row(commit, "SELECT build_id, address, calls_per_second FROM budget_plans WHERE ?1 NOTNULL",
                     "tid", copy_plan);
    return code;
}

/* ------------------------------------------------------------------------------------------ the run */

/* The columns of RUN_SQL. */
enum { RUN, RUN_NAME, COMMAND, OPTIONS, RUN_STARTED, RUN_ENDED, STATUS, FLUSHED, FROM, IS_CUT };
#define RUN_SQL \
    "SELECT run_id, name, command, options, started_ns, ended_ns, coalesce(exit_status, -1)," \
    " coalesce((SELECT max(ns) FROM losses l WHERE l.run_id = r.run_id AND cause = 'unfinished'), " \
    "started_ns)," \
    " coalesce((SELECT CAST(value AS INTEGER) FROM tags t WHERE t.run_id = r.run_id" \
    " AND key = '" WINDOW_FROM_TAG \
    "'), 0), EXISTS (SELECT 1 FROM tags t WHERE t.run_id = r.run_id" \
    " AND key = '" WINDOW_CUT_TAG "' AND value = '1') FROM runs r ORDER BY run_id DESC LIMIT 1"

static void format_time(uint64_t ns, char *text, size_t size)
{
    time_t seconds = (time_t)(ns / 1000000000u);
    struct tm tm;
    size_t length = strftime(text, size, "%Y-%m-%dT%H:%M:%S", gmtime_r(&seconds, &tm));

    snprintf(text + length, size - length, ".%03uZ", (unsigned)(ns / 1000000u % 1000));
}

/* What was kept, and what not; and a loss for threads of which nothing was. */
static int tell_window(struct window_copy *commit, sqlite3_stmt *row, const struct window_commit *asked)
{
    char value[160], from[40];
    int code;

    if (commit->from_ns > (uint64_t)sqlite3_column_int64(row, RUN_STARTED)) {
        format_time(commit->from_ns, from, sizeof(from));
        snprintf(value, sizeof(value), "the last %.3f s of %.3f s; nothing was kept from before %s%s",
                 (double)(commit->to_ns - commit->from_ns) / 1e9,
                 (double)(commit->to_ns - (uint64_t)sqlite3_column_int64(row, RUN_STARTED)) / 1e9, from,
                 sqlite3_column_int(row, IS_CUT) ? "; shorter than asked for: the size is limited" : "");
        code = trace_writer_loss(commit->writer, commit->from_ns, 0, TRACE_LOSS_WINDOW, commit->err);
    } else {
        snprintf(value, sizeof(value), "all of the recording, %.3f s",
                 (double)(commit->to_ns - commit->from_ns) / 1e9);
        code = 0;
    }
    if (!code)
        code = trace_writer_tag(commit->writer, "flight", value, commit->err);
    snprintf(value, sizeof(value), "%g s", (double)asked->window_ns / 1e9);
    if (!code && asked->window_ns)
        code = trace_writer_tag(commit->writer, "flight: window", value, commit->err);
    return code || !asked->trigger
               ? code
               : trace_writer_tag(commit->writer, "flight: trigger", asked->trigger, commit->err);
}

/* Of a run whose recorder has died nobody knows what came later. */
static int end_run(struct window_copy *commit, const struct window_commit *asked, int status)
{
    int code;

    if (!asked->is_cut)
        return trace_writer_end(commit->writer, commit->to_ns, status, commit->err);
    code = trace_writer_flush(commit->writer, commit->to_ns, commit->err);
    return code ? code
                : store_end_cut_run(commit->writer->db, trace_writer_run_id(commit->writer), commit->err);
}

static int make_run(struct window_copy *commit, struct tracestore *store, sqlite3_stmt *row,
                    const struct window_commit *asked)
{
    bool has_ended = sqlite3_column_type(row, RUN_ENDED) != SQLITE_NULL;
    uint64_t started_ns = (uint64_t)sqlite3_column_int64(row, RUN_STARTED);
    struct trace_run_description run = {
        .name = asked->name ? asked->name : window_text(row, RUN_NAME),
        .command = window_text(row, COMMAND),
        .options = window_text(row, OPTIONS),
    };
    int code;

    if (!*run.name) /* one is made */
        run.name = NULL;
    commit->run_id = sqlite3_column_int64(row, RUN);
    commit->from_ns = (uint64_t)sqlite3_column_int64(row, FROM);
    if (commit->from_ns < started_ns)
        commit->from_ns = started_ns;
    commit->to_ns = (uint64_t)sqlite3_column_int64(row, has_ended ? RUN_ENDED : FLUSHED);
    if (commit->to_ns < commit->from_ns)
        commit->to_ns = commit->from_ns;
    run.started_ns = commit->from_ns;
    code = trace_writer_begin(store, &run, NULL, &commit->writer, commit->err);
    if (!code)
        code = copy_catalog(commit);
    if (!code)
        code = tell_window(commit, row, asked);
    if (!code)
        code = end_run(commit, asked, sqlite3_column_int(row, STATUS));
    if (code && commit->writer)
        trace_writer_abandon(commit->writer, NULL);
    return code;
}

static void release(struct window_copy *commit)
{
    for (int kind = 0; kind < NUMBER_KINDS; kind++)
        numbering_release(&commit->maps[kind]);
    id_map_release(&commit->images);
    id_map_release(&commit->functions);
    id_map_release(&commit->sites);
    id_map_release(&commit->processes);
    free(commit->threads);
    trace_writer_free(commit->writer);
}

/* All that is read is of one moment. */
static int commit_snapshot(struct window_copy *commit, struct tracestore *store,
                           const struct window_commit *asked, struct window_committed *ret_committed)
{
    AUTO_STATEMENT *row = NULL;
    int result, code = db_prepare(commit->db, RUN_SQL, what, &row, commit->err);

    if (code)
        return code;
    result = db_row(row, "itttnNinii");
    if (result == SQLITE_DONE)
        return 0;
    code =
        result == SQLITE_ROW ? make_run(commit, store, row, asked) : db_fail(commit->db, commit->err, what);
    if (!code)
        *ret_committed = (struct window_committed){.run_id = trace_writer_run_id(commit->writer),
                                                   .from_ns = commit->from_ns,
                                                   .to_ns = commit->to_ns,
                                                   .segments = commit->segments};
    return code;
}

int window_commit(struct tracestore *window, struct tracestore *store, const struct window_commit *asked,
                  struct window_committed *ret_committed, struct error *err)
{
    struct error own = {0};
    struct window_copy commit = {.db = window->db, .err = err ? err : &own};
    struct window_committed committed = {0};
    int code = db_exec(commit.db, "BEGIN", what, commit.err);

    if (code)
        return code;
    code = commit_snapshot(&commit, store, asked, &committed);
    sqlite3_exec(commit.db, "COMMIT", NULL, NULL, NULL);
    release(&commit);
    if (!code)
        *ret_committed = committed;
    return code;
}
