/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * calls(run_id, thread_id, seq, end_seq, parent_seq, function_id, depth, ns, duration_ns, state, call_site,
 * assumed, duration_min_ns, duration_max_ns, name): one row a call. Call sites are decoded only when a query looks
 * at them, and a thread is read from its beginning when it looks at durations (idxNum): how exact a call's
 * time is cannot be told from a segment that begins inside it.
 *
 * A row comes when its call ends, the calls that never do at the end of the stream, innermost first: memory
 * is bounded by the depth of the calls, not by their number. A thread whose returns were not recorded gives a
 * row at each call, of state 'unknown'.
 *
 * Which calls are still open at the end needs no more than the last segment, because a segment begins with
 * the calls that are open at its start: `state <> 'returned'` decodes only that.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "store/db/db.h"
#include "store/sql/name_cache.h"
#include "store/sql/vtab_scan.h"
#include "store/sql/vtab_table.h"
#include "store/writer/window.h"

enum calls_column {
    CALLS_RUN,
    CALLS_THREAD,
    CALLS_SEQ,
    CALLS_END_SEQ,
    CALLS_PARENT_SEQ,
    CALLS_FUNCTION,
    CALLS_DEPTH,
    CALLS_NS,
    CALLS_DURATION,
    CALLS_STATE,
    CALLS_CALL_SITE,
    CALLS_ASSUMED,
    CALLS_DURATION_MIN,
    CALLS_DURATION_MAX,
    CALLS_NAME
};

/* idxNum: what the query looks at. */
enum { LOOKS_AT_SITES = 1, LOOKS_AT_DURATIONS = 2 };

static const struct vtab_column columns[] = {
    {"run_id", CALLS_RUN, TERM_RUN},
    {"thread_id", CALLS_THREAD, TERM_THREAD},
    {"seq", CALLS_SEQ, TERM_SEQ},
    {"ns", CALLS_NS, TERM_NS},
    {"function_id", CALLS_FUNCTION, TERM_FUNCTION},
    {"state", CALLS_STATE, TERM_STATE},
    {0},
};

/* What is missing of a thread, which decides what its calls without a return mean. */
struct thread_gaps {
    uint64_t kept_seq; /* lost events before this one are of before a window */
    uint64_t lost_seq; /* of the last other lost event, UINT64_MAX: none */
    uint64_t loss_ns;  /* when the last loss that has no place in the stream was noticed, 0: there is none */
};

struct call_row {
    struct open_call call;
    uint64_t depth;
    uint64_t parent_seq; /* UINT64_MAX: none */
    uint64_t end_seq, end_ns, end_ns_error;
    enum call_state state;
};

struct calls_cursor {
    struct vtab_cursor head;
    struct vtab_scan scan;
    struct thread_gaps gaps;
    struct name_cache names;
    int looks_at;
    enum { NEED_THREAD, IN_STREAM, AT_OPEN_CALLS } place;
    size_t wanted_open; /* of the open calls, how many could be rows that were asked for */
    uint64_t last_ns;   /* of the last event: those behind it are no earlier */
    struct call_row row;
};

static int calls_connect(sqlite3 *db, void *context, int argc, const char *const *argv,
                         sqlite3_vtab **ret_table, char **ret_message)
{
    return vtab_connect(db,
                        "CREATE TABLE calls(run_id INTEGER, thread_id INTEGER, seq INTEGER, end_seq INTEGER, "
                        "parent_seq INTEGER, function_id INTEGER, depth INTEGER, ns INTEGER, "
                        "duration_ns INTEGER, state TEXT, call_site INTEGER, assumed INTEGER, "
                        "duration_min_ns INTEGER, duration_max_ns INTEGER, name TEXT)",
                        ret_table);
}

static int calls_best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
    int result;

    info->idxNum = vtab_column_used(info, CALLS_CALL_SITE) ? LOOKS_AT_SITES : 0;
    if (vtab_column_used(info, CALLS_DURATION) || vtab_column_used(info, CALLS_DURATION_MIN) ||
        vtab_column_used(info, CALLS_DURATION_MAX))
        info->idxNum |= LOOKS_AT_DURATIONS;
    result = vtab_best_index(info, columns);
    vtab_trust_numbers(info, columns);
    return result;
}

static int calls_open(sqlite3_vtab *table, sqlite3_vtab_cursor **ret_cursor)
{
    return vtab_open(sizeof(struct calls_cursor), ret_cursor);
}

static int calls_close(sqlite3_vtab_cursor *base)
{
    struct calls_cursor *cursor = (struct calls_cursor *)base;

    vtab_scan_stop(&cursor->scan);
    name_cache_release(&cursor->names);
    sqlite3_free(cursor);
    return SQLITE_OK;
}

/* -------------------------------------------------------------------------------------- entering a thread */

/* One number of the thread that the scan is at. */
static int read_number(const struct vtab_scan *scan, const char *sql, int64_t *ret_number, struct error *err)
{
    return db_number(scan->db, "cannot read the thread", ret_number, err, sql, "ii", scan->thread_id,
                     scan->run_id);
}

static int read_gaps(const struct vtab_scan *scan, struct thread_gaps *ret_gaps, struct error *err)
{
    int64_t kept_seq, lost_seq, loss_ns;
    int r =
        read_number(scan,
                    "SELECT coalesce(max(seq) + 1, 0) FROM main.losses WHERE thread_id = ?1 AND run_id = ?2"
                    " AND cause = '" TRACE_LOSS_WINDOW "'",
                    &kept_seq, err);

    if (r == 0)
        r = read_number(scan,
                        "SELECT coalesce(max(seq), -1) FROM main.losses WHERE thread_id = ?1 AND run_id = ?2"
                        " AND cause <> '" TRACE_LOSS_WINDOW "'",
                        &lost_seq, err);
    if (r < 0)
        return r;
    /* Where such a loss was is not known; that it was before it was noticed is. Of a run that its recorder
     * did not end, all after the last flush is missing. */
    r = read_number(scan,
                    "SELECT max(CASE cause WHEN 'unfinished' THEN 9223372036854775807 ELSE max(ns, 1) END) "
                    "FROM main.losses WHERE run_id = ?2 AND (thread_id IS NULL OR thread_id = ?1) "
                    "AND (seq IS NULL OR count IS NULL) AND cause <> '" TRACE_LOSS_WINDOW "'",
                    &loss_ns, err);
    if (r < 0)
        return r;
    *ret_gaps = (struct thread_gaps){
        .kept_seq = (uint64_t)kept_seq, .lost_seq = (uint64_t)lost_seq, .loss_ns = (uint64_t)loss_ns};
    return 0;
}

static int open_thread(struct calls_cursor *cursor, struct error *err)
{
    struct vtab_scan *scan = &cursor->scan;
    const struct vtab_constraints *constraints = &scan->constraints;
    bool whole = cursor->looks_at & LOOKS_AT_DURATIONS;
    struct event_range range = {.first_seq = whole ? 0 : constraints->first_seq, .last_seq = UINT64_MAX};
    int64_t last_segment = 0;
    int r = read_gaps(scan, &cursor->gaps, err);

    if (r < 0)
        return r;
    cursor->wanted_open = 0;
    cursor->last_ns = 0;
    if (constraints->has_ns && constraints->from_ns && !whole) {
        range.from_ns = constraints->from_ns;
        range.to_ns = INT64_MAX; /* a call that began in time may end later */
    }
    if (constraints->has_functions && !whole)
        range.functions = &constraints->functions;
    if (!(constraints->states & STATE_RETURNED) && scan->returns != TRACE_RETURNS_NONE) {
        /* Only from a segment's start on are the calls open at the end known; ones that began in time or are
         * of that function may be on its list. */
        r = read_number(scan, "SELECT max(first_seq) FROM main.segments WHERE thread_id = ?1 AND run_id = ?2",
                        &last_segment, err);
        range = (struct event_range){.first_seq = (uint64_t)last_segment, .last_seq = UINT64_MAX};
    }
    range.no_sites = !(cursor->looks_at & LOOKS_AT_SITES);
    return r < 0 ? r : vtab_scan_open_events(scan, &range, err);
}

/* ------------------------------------------------------------------------------------------ rows */

static bool call_wanted(const struct vtab_constraints *constraints, const struct open_call *call)
{
    if (call->seq < constraints->first_seq || call->seq > constraints->last_seq)
        return false;
    return vtab_wants_time(constraints, call->ns) && vtab_wants_function(constraints, call->function);
}

static void count_wanted(struct calls_cursor *cursor)
{
    cursor->wanted_open = 0;
    for (size_t i = 0; i < cursor->scan.depth; i++)
        cursor->wanted_open += call_wanted(&cursor->scan.constraints, &cursor->scan.open[i]);
}

static enum call_state state_at_end(const struct calls_cursor *cursor, const struct open_call *call)
{
    const struct thread_gaps *gaps = &cursor->gaps;

    if (!trace_returns_tell_open(cursor->scan.returns))
        return STATE_UNKNOWN;
    if (gaps->lost_seq != UINT64_MAX && gaps->lost_seq > call->seq)
        return STATE_UNKNOWN;
    if (gaps->loss_ns && (!call->ns || gaps->loss_ns >= call->ns))
        return STATE_UNKNOWN;
    return STATE_OPEN;
}

/* A call is still there when the stream ends: the innermost of those left. */
static void take_open_call(struct calls_cursor *cursor)
{
    struct vtab_scan *scan = &cursor->scan;
    const struct open_call *call = &scan->open[--scan->depth];

    cursor->row = (struct call_row){
        .call = *call,
        .depth = scan->depth,
        .parent_seq = scan->depth ? call[-1].seq : UINT64_MAX,
        .end_seq = UINT64_MAX,
        .state = state_at_end(cursor, call),
    };
}

static void take_returned_call(struct calls_cursor *cursor, const struct open_call *call,
                               const struct event *event)
{
    const struct vtab_scan *scan = &cursor->scan;

    cursor->row = (struct call_row){
        .call = *call,
        .depth = event->depth,
        .parent_seq = scan->depth ? scan->open[scan->depth - 1].seq : UINT64_MAX,
        .end_seq = event->seq,
        .end_ns = event->ns,
        .end_ns_error = event->ns_error,
        .state = STATE_RETURNED,
    };
}

/* A call of a thread whose returns are not recorded. */
static void take_bare_call(struct calls_cursor *cursor, const struct event *event)
{
    cursor->row = (struct call_row){
        .call = {.seq = event->seq,
                 .ns = event->ns,
                 .function = event->function,
                 .site = event->call_site,
                 .assumed = event->assumed},
        .depth = event->depth,
        .parent_seq = UINT64_MAX,
        .end_seq = UINT64_MAX,
        .state = STATE_UNKNOWN,
    };
}

/* Follows the stream by one event: 0 with a row, 1 without, <0. */
static int follow_event(struct calls_cursor *cursor, const struct event *event)
{
    struct vtab_scan *scan = &cursor->scan;
    const struct vtab_constraints *constraints = &scan->constraints;
    bool jumped = event->seq != scan->next_seq;
    const struct open_call *ended;
    int r;

    if (event->kind == EVENT_LOST && event->seq >= cursor->gaps.kept_seq &&
        (cursor->gaps.lost_seq == UINT64_MAX || event->seq > cursor->gaps.lost_seq))
        cursor->gaps.lost_seq = event->seq;
    if (scan->returns == TRACE_RETURNS_NONE && event->kind == EVENT_CALL) {
        take_bare_call(cursor, event);
        return call_wanted(constraints, &cursor->row.call) ? 0 : 1;
    }
    ended = vtab_scan_follow(scan, event, &r);
    if (r < 0)
        return r;
    if (jumped)
        count_wanted(cursor);
    else if (event->kind == EVENT_CALL)
        cursor->wanted_open += call_wanted(constraints, &scan->open[scan->depth - 1]);
    if (!ended || !call_wanted(constraints, ended))
        return 1;
    cursor->wanted_open -= !jumped;
    if (!(constraints->states & STATE_RETURNED))
        return 1;
    take_returned_call(cursor, ended, event);
    return 0;
}

/* No later event can end or begin a call that was asked for. */
static bool stream_done(const struct calls_cursor *cursor)
{
    const struct vtab_scan *scan = &cursor->scan;

    if (scan->next_seq == UINT64_MAX || cursor->wanted_open)
        return false;
    return scan->next_seq > scan->constraints.last_seq || cursor->last_ns > scan->constraints.to_ns;
}

static int step_stream(struct calls_cursor *cursor, struct error *err)
{
    struct event event;
    int r;

    while (!stream_done(cursor)) {
        r = event_iter_next(cursor->scan.iter, &event, err);
        if (r > 0)
            break;
        if (r == 0) {
            cursor->last_ns = event.ns;
            r = follow_event(cursor, &event);
        }
        if (r <= 0)
            return r == -ENOMEM ? error_no_memory(err) : r;
        if (cursor->scan.returns == TRACE_RETURNS_NONE)
            cursor->scan.next_seq = event.seq + 1;
    }
    cursor->place = AT_OPEN_CALLS;
    return 1;
}

static int step_open_calls(struct calls_cursor *cursor)
{
    while (cursor->scan.depth) {
        take_open_call(cursor);
        if (call_wanted(&cursor->scan.constraints, &cursor->row.call))
            return 0;
    }
    cursor->place = NEED_THREAD;
    return 1;
}

/* 0 with a row, 1 at the end of all, <0. */
static int step(struct calls_cursor *cursor, struct error *err)
{
    int r = 1;

    while (r > 0) {
        if (cursor->place == NEED_THREAD) {
            r = vtab_scan_next_thread(&cursor->scan, err);
            if (r == 0)
                r = open_thread(cursor, err);
            if (r)
                return r;
            cursor->place = IN_STREAM;
        }
        r = cursor->place == IN_STREAM ? step_stream(cursor, err) : step_open_calls(cursor);
    }
    return r;
}

static int calls_next(sqlite3_vtab_cursor *base)
{
    struct calls_cursor *cursor = (struct calls_cursor *)base;
    struct error err; /* half a KiB that only a failure fills: to clear it cost a tenth of a scan */
    int r;

    err.message[0] = '\0';
    r = step(cursor, &err);
    cursor->head.row++;
    cursor->head.end = r != 0;
    return r < 0 ? vtab_fail(base->pVtab, r, &err) : SQLITE_OK;
}

static int calls_filter(sqlite3_vtab_cursor *base, int index_number, const char *index_text, int argc,
                        sqlite3_value **argv)
{
    struct calls_cursor *cursor = (struct calls_cursor *)base;
    struct error err = {0};
    int r;

    cursor->place = NEED_THREAD;
    cursor->looks_at = index_number;
    cursor->head.row = 0;
    r = vtab_scan_start(&cursor->scan, vtab_db(base->pVtab), index_text, argc, argv, &err);
    return r < 0 ? vtab_fail(base->pVtab, r, &err) : calls_next(base);
}

/* Leaves the column NULL where there is no such event. */
static void result_seq(sqlite3_context *context, uint64_t seq)
{
    if (seq != UINT64_MAX)
        sqlite3_result_int64(context, (sqlite3_int64)seq);
}

static void result_state(sqlite3_context *context, enum call_state state)
{
    const char *text = state == STATE_RETURNED ? "returned" : state == STATE_OPEN ? "open" : "unknown";

    sqlite3_result_text(context, text, -1, SQLITE_STATIC);
}

/* Exact if both ends are; otherwise it has bounds, the upper one only if there is a time behind its end. */
static void result_duration(sqlite3_context *context, const struct call_row *row, enum calls_column column)
{
    uint64_t call_until =
        row->call.ns_error == OPEN_CALL_SOMETIME ? UINT64_MAX : row->call.ns + row->call.ns_error;
    uint64_t least = row->end_ns > call_until ? row->end_ns - call_until : 0;

    if (column == CALLS_DURATION_MAX) {
        if (row->end_ns_error < INT64_MAX - row->end_ns)
            sqlite3_result_int64(context, (sqlite3_int64)(row->end_ns + row->end_ns_error - row->call.ns));
    } else if (column == CALLS_DURATION_MIN || (!row->call.ns_error && !row->end_ns_error)) {
        sqlite3_result_int64(context, (sqlite3_int64)least);
    }
}

static int calls_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    struct calls_cursor *cursor = (struct calls_cursor *)base;
    const struct call_row *row = &cursor->row;

    switch ((enum calls_column)column) {
    case CALLS_RUN:
        sqlite3_result_int64(context, cursor->scan.run_id);
        break;
    case CALLS_THREAD:
        sqlite3_result_int64(context, cursor->scan.thread_id);
        break;
    case CALLS_SEQ:
        result_seq(context, row->call.seq);
        break;
    case CALLS_END_SEQ:
        result_seq(context, row->end_seq);
        break;
    case CALLS_PARENT_SEQ:
        result_seq(context, row->parent_seq);
        break;
    case CALLS_FUNCTION:
        sqlite3_result_int64(context, row->call.function);
        break;
    case CALLS_DEPTH:
        sqlite3_result_int64(context, (sqlite3_int64)row->depth);
        break;
    case CALLS_NS:
        if (row->call.ns)
            sqlite3_result_int64(context, (sqlite3_int64)row->call.ns);
        break;
    case CALLS_DURATION:
    case CALLS_DURATION_MIN:
    case CALLS_DURATION_MAX:
        if (row->call.ns && row->end_ns)
            result_duration(context, row, (enum calls_column)column);
        break;
    case CALLS_STATE:
        result_state(context, row->state);
        break;
    case CALLS_CALL_SITE:
        if (row->call.site)
            sqlite3_result_int64(context, row->call.site);
        break;
    case CALLS_ASSUMED:
        sqlite3_result_int(context, row->call.assumed);
        break;
    case CALLS_NAME:
        return name_cache_result(&cursor->names, vtab_db(base->pVtab), row->call.function, context);
    }
    return SQLITE_OK;
}

const sqlite3_module vtab_calls_module = VTAB_MODULE(calls);
