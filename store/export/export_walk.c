/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The walk of an export: each thread's events in order, with their place in time and what became of each
 * call, and then what was not seen.
 *
 * The walk keeps the calls whose begin the sink has and whose end it does not have. Where the stream jumps (at
 * the first event of a range, behind a damaged segment) the calls that are open there come from the segment's
 * own stack, and the sink gets the difference as unseen calls and returns.
 */
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "store/export/export_run.h"
#include "store/segment/event_iter.h"

struct reported_call {
    uint64_t seq;
    uint32_t function; /* function_id */
    bool returned;     /* it did return, if not in what is exported */
};

/* The calls of a thread without a return: few, and in order. */
struct unreturned {
    struct {
        uint64_t seq;
        bool open;
    } * calls;
    size_t count, capacity, at;
    bool unread; /* the last segment is damaged: nothing is known of any call */
};

struct walk {
    struct export_run *run;
    const struct export_sink *sink;
    void *context;
    const struct tracestore_thread *thread;
    struct event_iter *iter;
    struct export_clock clock;
    struct unreturned unreturned;
    struct export_sites sites;
    sqlite3_stmt *find_loss;
    struct reported_call *reported;
    size_t depth, capacity;
    uint64_t last_seq, last_ns;
    bool jumped; /* `reported` may not be what the stream has open */
};

static const char what[] = "cannot read the run";

const char *export_state_name(enum export_state state)
{
    static const char *const names[] = {
        [EXPORT_RETURNED] = "returned", [EXPORT_OPEN] = "open", [EXPORT_UNKNOWN] = "unknown"};

    return names[state];
}

/* ------------------------------------------------------------------------------------------ what became */

static int read_unreturned(struct walk *walk)
{
    AUTO_STATEMENT *row = NULL;
    struct unreturned *unreturned = &walk->unreturned;
    sqlite3 *db = tracestore_db(walk->run->store);
    int result, r = db_prepare(db,
                               "SELECT seq, state = 'open' FROM calls WHERE run_id = ?1 AND thread_id = ?2"
                               " AND state <> 'returned' ORDER BY seq",
                               what, &row, walk->run->err);

    unreturned->count = unreturned->at = 0;
    unreturned->unread = walk->thread->returns == TRACE_RETURNS_NONE;
    if (r < 0 || unreturned->unread)
        return r;
    db_bind(row, "ii", walk->thread->run_id, walk->thread->thread_id);
    while ((result = db_row(row, "ni")) == SQLITE_ROW) {
        if (array_reserve(&unreturned->calls, &unreturned->capacity, unreturned->count + 1))
            return error_no_memory(walk->run->err);
        unreturned->calls[unreturned->count].seq = (uint64_t)sqlite3_column_int64(row, 0);
        unreturned->calls[unreturned->count++].open = sqlite3_column_int(row, 1);
    }
    unreturned->unread = result != SQLITE_DONE;
    return 0;
}

static enum export_state state_of(struct unreturned *unreturned, uint64_t seq)
{
    if (unreturned->unread)
        return EXPORT_UNKNOWN;
    while (unreturned->at < unreturned->count && unreturned->calls[unreturned->at].seq < seq)
        unreturned->at++;
    if (unreturned->at == unreturned->count || unreturned->calls[unreturned->at].seq != seq)
        return EXPORT_RETURNED;
    return unreturned->calls[unreturned->at].open ? EXPORT_OPEN : EXPORT_UNKNOWN;
}

/* ------------------------------------------------------------------------------------------ telling */

static int tell(struct walk *walk, struct export_event *event)
{
    FILE *out = walk->run->out;
    int r;

    event->at_ns = walk->last_ns;
    if (event->event.kind != EVENT_LOST)
        event->function = export_function_index(walk->run, event->event.function);
    r = walk->sink->event(walk->context, event);
    if (r == 0 && out && ferror_unlocked(out))
        r = error_set(walk->run->err, -EIO, NULL, "cannot write the export");
    return r;
}

static int tell_call(struct walk *walk, struct export_event *event, uint64_t seq)
{
    int r;

    if (array_reserve(&walk->reported, &walk->capacity, walk->depth + 1))
        return error_no_memory(walk->run->err);
    event->state = state_of(&walk->unreturned, seq);
    r = tell(walk, event);
    if (r == 0 && walk->thread->returns != TRACE_RETURNS_NONE)
        walk->reported[walk->depth++] = (struct reported_call){
            .seq = seq,
            .function = event->event.function,
            .returned = event->state == EXPORT_RETURNED,
        };
    return r;
}

/* The innermost reported call has ended somewhere. */
static int tell_unseen_return(struct walk *walk)
{
    const struct reported_call *call = &walk->reported[--walk->depth];
    struct export_event event = {
        .event = {.kind = EVENT_RETURN, .depth = (uint32_t)walk->depth, .function = call->function},
        .unseen = true,
    };

    return tell(walk, &event);
}

static int tell_unseen_call(struct walk *walk, const struct open_call *call)
{
    struct export_event event = {
        .event = {.kind = EVENT_CALL,
                  .seq = call->seq,
                  .depth = (uint32_t)walk->depth,
                  .function = call->function},
        .unseen = true,
    };

    return tell_call(walk, &event, call->seq);
}

/* Makes what has been reported what the stream had open before `event`. */
static int match(struct walk *walk, const struct event *event)
{
    size_t open, same = 0;
    const struct open_call *calls = event_iter_open_calls(walk->iter, &open);
    struct open_call ended = {0};
    int r = 0;

    walk->jumped = false;
    if (walk->thread->returns == TRACE_RETURNS_NONE)
        return 0;
    if (event->kind == EVENT_CALL)
        open--;
    while (same < open && same < walk->depth && walk->reported[same].seq == calls[same].seq)
        same++;
    if (event->kind == EVENT_RETURN) {
        ended = *event_iter_ended_call(walk->iter);
        if (same == open && same < walk->depth && walk->reported[same].seq == ended.seq)
            same++;
    }
    while (r == 0 && walk->depth > same)
        r = tell_unseen_return(walk);
    /* The stretch before the jump may have left `at` behind the calls that began earlier. */
    walk->unreturned.at = 0;
    while (r == 0 && walk->depth < open)
        r = tell_unseen_call(walk, &calls[walk->depth]);
    if (r == 0 && event->kind == EVENT_RETURN && walk->depth == open)
        r = tell_unseen_call(walk, &ended);
    return r;
}

static int tell_loss(struct walk *walk, struct export_event *event)
{
    sqlite3 *db = tracestore_db(walk->run->store);
    int r = 0;

    event->cause = "unknown cause";
    if (!walk->find_loss)
        r = db_prepare(db,
                       "SELECT coalesce(count, 0), cause FROM losses WHERE run_id = ?1 AND thread_id = ?2 "
                       "AND seq = ?3",
                       what, &walk->find_loss, walk->run->err);
    if (r < 0)
        return r;
    db_bind(walk->find_loss, "iii", walk->thread->run_id, walk->thread->thread_id, (int64_t)event->event.seq);
    if (db_row(walk->find_loss, "nt") == SQLITE_ROW) {
        event->count = (uint64_t)sqlite3_column_int64(walk->find_loss, 0);
        event->cause = (const char *)sqlite3_column_text(walk->find_loss, 1);
    }
    walk->run->totals.lost += event->count;
    r = tell(walk, event);
    sqlite3_reset(walk->find_loss);
    return r;
}

static int tell_damage(struct walk *walk)
{
    struct export_event event = {
        .event = {.kind = EVENT_LOST, .depth = (uint32_t)walk->depth},
        .cause = "damaged segment",
        .unseen = true,
    };

    walk->jumped = true;
    walk->run->totals.damaged++;
    return tell(walk, &event);
}

static int tell_event(struct walk *walk, const struct event *event)
{
    struct export_event reported = {.event = *event};
    int r = 0;

    if (walk->jumped)
        r = match(walk, event);
    if (r < 0)
        return r;
    walk->run->totals.events++;
    if (event->kind == EVENT_LOST)
        return tell_loss(walk, &reported);
    if (event->kind == EVENT_RETURN) {
        walk->depth -= walk->depth > 0;
        return tell(walk, &reported);
    }
    if (event->call_site && walk->sink->wants_sites)
        r = export_sites_find(&walk->sites, walk->run, event->call_site, &reported.site);
    return r < 0 ? r : tell_call(walk, &reported, event->seq);
}

/* ------------------------------------------------------------------------------------------ one thread */

/* The first event that can be in the time wanted: that of a segment, or of the open one behind them. */
static int first_in_time(const struct walk *walk, uint64_t *ret_seq)
{
    sqlite3 *db = tracestore_db(walk->run->store);
    int64_t seq;
    int r = db_number(db, what, &seq, walk->run->err,
                      "SELECT coalesce((SELECT first_seq FROM segments WHERE thread_id = ?1 AND last_ns >= ?2"
                      " ORDER BY first_seq LIMIT 1), (SELECT first_seq + event_count FROM segments"
                      " WHERE thread_id = ?1 ORDER BY first_seq DESC LIMIT 1), 0)",
                      "ii", walk->thread->thread_id, (int64_t)walk->run->options->from_ns);

    if (r == 0)
        *ret_seq = (uint64_t)seq;
    return r;
}

static int open_thread(struct walk *walk)
{
    const struct export_options *options = walk->run->options;
    struct event_range range = {
        .first_seq = options->first_seq,
        .last_seq = options->last_seq ? options->last_seq : UINT64_MAX,
        .no_sites = !walk->sink->wants_sites,
    };
    uint64_t in_time = 0;
    int r = options->from_ns ? first_in_time(walk, &in_time) : 0;

    if (in_time > range.first_seq)
        range.first_seq = in_time;
    walk->depth = 0;
    walk->last_ns = walk->run->origin_ns;
    walk->jumped = true;
    if (r == 0)
        r = read_unreturned(walk);
    if (r == 0)
        r = export_clock_open(&walk->clock, walk->run, walk->thread, range.first_seq);
    if (r == 0)
        r = event_iter_open_db(tracestore_db(walk->run->store), walk->thread->thread_id, &range, &walk->iter,
                               walk->run->err);
    return r;
}

static void close_thread(struct walk *walk)
{
    event_iter_free(take_pointer(walk->iter));
    export_clock_release(&walk->clock);
}

/* 0: continue, 1: nothing more of the thread is wanted. */
static int step(struct walk *walk)
{
    const struct export_options *options = walk->run->options;
    struct event event;
    uint64_t at;
    int r = event_iter_next(walk->iter, &event, walk->run->err);

    if (r == -EBADMSG || r == -ENOTSUP)
        return tell_damage(walk);
    if (r == 0)
        r = export_clock_place(&walk->clock, &event, &at, walk->run->err);
    if (r)
        return r;
    if (at < options->from_ns)
        return 0;
    if (options->to_ns && at > options->to_ns)
        return 1;
    walk->last_ns = at;
    return tell_event(walk, &event);
}

static int walk_thread(struct walk *walk)
{
    int r = walk->sink->thread(walk->context, walk->thread);

    if (r == 0)
        r = open_thread(walk);
    while (r == 0)
        r = step(walk);
    if (r > 0)
        r = 0;
    /* Calls that returned behind the end of what was asked for. */
    while (r == 0 && walk->depth && walk->reported[walk->depth - 1].returned)
        r = tell_unseen_return(walk);
    close_thread(walk);
    walk->run->totals.threads++;
    return r < 0 ? r : walk->sink->thread_end(walk->context);
}

/* ------------------------------------------------------------------------------------------ gaps */

static const struct tracestore_thread *find_thread(const struct export_run *run, int64_t thread_id)
{
    for (size_t i = 0; i < run->thread_count; i++)
        if (run->threads[i].thread_id == thread_id)
            return &run->threads[i];
    return NULL;
}

static int walk_losses(struct walk *walk)
{
    struct export_run *run = walk->run;
    AUTO_STATEMENT *row = NULL;
    int result = SQLITE_DONE, r = db_prepare(tracestore_db(run->store),
                                             "SELECT thread_id, ns, coalesce(count, 0), cause FROM losses"
                                             " WHERE run_id = ?1 AND seq IS NULL ORDER BY loss_id",
                                             what, &row, run->err);

    if (r == 0)
        db_bind(row, "i", run->run->run_id);
    while (r == 0 && (result = db_row(row, "Innt")) == SQLITE_ROW) {
        struct export_gap gap = {
            .thread = find_thread(run, sqlite3_column_int64(row, 0)),
            .from_ns = (uint64_t)sqlite3_column_int64(row, 1),
            .to_ns = (uint64_t)sqlite3_column_int64(row, 1),
            .count = (uint64_t)sqlite3_column_int64(row, 2),
            .cause = (const char *)sqlite3_column_text(row, 3),
        };

        if (run->options->thread && !gap.thread && sqlite3_column_int64(row, 0))
            continue; /* of a thread that is not exported */
        run->totals.lost += gap.count;
        r = walk->sink->gap(walk->context, &gap);
    }
    return r == 0 && result != SQLITE_DONE ? db_fail(tracestore_db(run->store), run->err, what) : r;
}

static int walk_blind(struct walk *walk)
{
    struct export_run *run = walk->run;
    AUTO_STATEMENT *row = NULL;
    int result = SQLITE_DONE, r = db_prepare(tracestore_db(run->store),
                                             "SELECT coalesce(demangled, name, ''), from_ns,"
                                             " coalesce(to_ns, 0), cause FROM blind"
                                             " LEFT JOIN functions USING (function_id)"
                                             " WHERE run_id = ?1 ORDER BY from_ns, blind.rowid",
                                             what, &row, run->err);

    if (r == 0)
        db_bind(row, "i", run->run->run_id);
    while (r == 0 && (result = db_row(row, "tnnt")) == SQLITE_ROW) {
        const struct export_gap gap = {
            .blind = true,
            .name = (const char *)sqlite3_column_text(row, 0),
            .from_ns = (uint64_t)sqlite3_column_int64(row, 1),
            .to_ns = (uint64_t)sqlite3_column_int64(row, 2),
            .cause = (const char *)sqlite3_column_text(row, 3),
        };

        r = walk->sink->gap(walk->context, &gap);
    }
    return r == 0 && result != SQLITE_DONE ? db_fail(tracestore_db(run->store), run->err, what) : r;
}

int export_walk(struct export_run *run, const struct export_sink *sink, void *context)
{
    struct walk walk = {.run = run, .sink = sink, .context = context};
    int r = 0;

    for (size_t i = 0; r == 0 && i < run->thread_count; i++) {
        walk.thread = &run->threads[i];
        r = walk_thread(&walk);
    }
    if (r == 0)
        r = walk_losses(&walk);
    if (r == 0)
        r = walk_blind(&walk);
    export_sites_release(&walk.sites);
    sqlite3_finalize(walk.find_loss);
    free(walk.unreturned.calls);
    free(walk.reported);
    return r;
}
