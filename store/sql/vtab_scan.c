/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/sql/vtab_scan.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "store/db/db.h"

/* ------------------------------------------------------------------------------------------ threads */

/* Labels are P.T or P.gN; in the order of the numbers, threads before goroutines. */
#define THREADS_SQL(where) \
    "SELECT thread_id, run_id, returns FROM main.threads WHERE " where \
    " ORDER BY run_id, " \
    "CAST(label AS INTEGER), label LIKE '%.g%', " \
    "CAST(ltrim(substr(label, instr(label, '.') + 1), 'g') AS INTEGER), label, thread_id"

int vtab_scan_start(struct vtab_scan *scan, sqlite3 *db, const char *index_text, int argc,
                    sqlite3_value **argv, struct error *err)
{
    const struct vtab_constraints *constraints = &scan->constraints;
    const char *sql = THREADS_SQL("?1 IS NULL OR 1");

    vtab_scan_stop(scan);
    scan->db = db;
    scan->next_seq = UINT64_MAX;
    if (vtab_read_constraints(index_text, argc, argv, &scan->constraints))
        return error_no_memory(err);
    if (constraints->nothing)
        return 0;
    if (constraints->has_thread)
        sql = THREADS_SQL("thread_id = ?2 AND (?1 IS NULL OR run_id = ?1)");
    else if (constraints->has_run)
        sql = THREADS_SQL("run_id = ?1");
    if (sqlite3_prepare_v2(db, sql, -1, &scan->threads, NULL) != SQLITE_OK)
        return error_say(err, -EINVAL, "reading threads: %s", sqlite3_errmsg(db));
    if (constraints->has_run)
        sqlite3_bind_int64(scan->threads, 1, constraints->run_id);
    if (constraints->has_thread)
        sqlite3_bind_int64(scan->threads, 2, constraints->thread_id);
    return 0;
}

void vtab_scan_stop(struct vtab_scan *scan)
{
    event_iter_free(scan->iter);
    sqlite3_finalize(scan->threads);
    free(scan->open);
    vtab_constraints_release(&scan->constraints);
    *scan = (struct vtab_scan){0};
}

int vtab_scan_next_thread(struct vtab_scan *scan, struct error *err)
{
    const char *returns;
    int r;

    event_iter_free(scan->iter);
    scan->iter = NULL;
    scan->depth = 0;
    if (!scan->threads)
        return 1;
    /* Not stepped behind its end: a statement that is not at its end holds the snapshot that all is read
     * from. */
    r = db_row(scan->threads, "iit");
    if (r == SQLITE_DONE) {
        sqlite3_finalize(scan->threads);
        scan->threads = NULL;
        return 1;
    }
    if (r != SQLITE_ROW)
        return db_fail(scan->db, err, "cannot read the threads");
    scan->thread_id = sqlite3_column_int64(scan->threads, 0);
    scan->run_id = sqlite3_column_int64(scan->threads, 1);
    returns = (const char *)sqlite3_column_text(scan->threads, 2);
    scan->returns = trace_returns_parse(returns ? returns : "");
    return 0;
}

int vtab_scan_open_events(struct vtab_scan *scan, const struct event_range *range, struct error *err)
{
    scan->next_seq = UINT64_MAX;
    return event_iter_open_db(scan->db, scan->thread_id, range, &scan->iter, err);
}

/* ----------------------------------------------------------------------------------------- the open calls */

/* Those that are open after `event`. How exact their times are is not in the segment's list. */
static int copy_open_calls(struct vtab_scan *scan, const struct event *event)
{
    size_t depth = 0;
    const struct open_call *open = event_iter_open_calls(scan->iter, &depth);

    if (array_reserve(&scan->open, &scan->capacity, depth) < 0)
        return -ENOMEM;
    if (depth)
        memcpy(scan->open, open, depth * sizeof(*open));
    scan->depth = depth;
    for (size_t i = 0; i < depth; i++)
        scan->open[i].ns_error = OPEN_CALL_SOMETIME;
    if (depth && event->kind == EVENT_CALL)
        scan->open[depth - 1].ns_error = event->ns_error;
    return 0;
}

/* What ends after a loss may be another call of the same function: one that began among what was lost. */
static void doubt_open_calls(struct vtab_scan *scan)
{
    for (size_t i = 0; i < scan->depth; i++)
        scan->open[i].ns_error = OPEN_CALL_SOMETIME;
}

const struct open_call *vtab_scan_follow(struct vtab_scan *scan, const struct event *event, int *ret_result)
{
    bool jumped = event->seq != scan->next_seq, popped = false;

    *ret_result = 0;
    scan->next_seq = event->seq + 1;
    if (jumped) {
        *ret_result = copy_open_calls(scan, event);
    } else if (event->kind == EVENT_RETURN && scan->depth) {
        scan->depth--;
        popped = true;
    } else if (event->kind == EVENT_CALL && scan->returns != TRACE_RETURNS_NONE) {
        *ret_result = array_reserve(&scan->open, &scan->capacity, scan->depth + 1);
        if (*ret_result == 0)
            scan->open[scan->depth++] = (struct open_call){.seq = event->seq,
                                                           .ns = event->ns,
                                                           .ns_error = event->ns_error,
                                                           .function = event->function,
                                                           .site = event->call_site,
                                                           .assumed = event->assumed};
    }
    if (*ret_result == 0 && event->kind == EVENT_LOST)
        doubt_open_calls(scan);
    if (*ret_result < 0 || event->kind != EVENT_RETURN)
        return NULL;
    if (popped)
        return &scan->open[scan->depth];
    scan->ended = *event_iter_ended_call(scan->iter);
    scan->ended.ns_error = OPEN_CALL_SOMETIME;
    return &scan->ended;
}
