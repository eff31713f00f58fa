/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/times/function_times.h"

#include <errno.h>
#include <stdlib.h>

#include "analyzer/times/call_duration.h"
#include "base/array.h"
#include "base/error.h"
#include "store/db/db.h"
#include "store/segment/event_iter.h"

#define UNKNOWN_FUNCTION UINT32_MAX

/* A call that is open. */
struct frame {
    struct call_begin begin;
    uint32_t function;       /* index; UNKNOWN_FUNCTION: none of the run's */
    struct time_range inner; /* the calls that it made */
};

#define CACHE_SIZE 1024u

struct reading {
    struct function_times *times;
    enum function_times_detail detail;
    struct frame *frames;
    size_t depth, capacity;
    struct {
        uint32_t id, index;
    } cache[CACHE_SIZE];
};

/* ------------------------------------------------------------------------------------------ functions */

static int read_functions(struct tracestore *store, int64_t run_id, struct function_times *times,
                          struct error *err)
{
    static const char what[] = "cannot read the functions of the run";
    sqlite3 *db = tracestore_db(store);
    AUTO_STATEMENT *row = NULL;
    int r = db_prepare(db,
                       "SELECT function_id, sum(calls) FROM function_calls WHERE run_id = ?1 "
                       "GROUP BY function_id ORDER BY function_id",
                       what, &row, err);
    int result;

    if (r < 0)
        return r;
    sqlite3_bind_int64(row, 1, run_id);
    while ((result = db_row(row, "nn")) == SQLITE_ROW) {
        if (array_reserve(&times->functions, &times->capacity, times->count + 1))
            return error_no_memory(err);
        times->functions[times->count++] = (struct function_time){
            .function_id = (uint32_t)sqlite3_column_int64(row, 0),
            .calls = (uint64_t)sqlite3_column_int64(row, 1),
        };
    }
    return result == SQLITE_DONE ? 0 : db_fail(db, err, what);
}

static int compare_id(const void *key, const void *item)
{
    uint32_t id = *(const uint32_t *)key, other = ((const struct function_time *)item)->function_id;

    return id < other ? -1 : id > other;
}

const struct function_time *function_times_find(const struct function_times *times, uint32_t function_id)
{
    if (!times->count)
        return NULL;
    return bsearch(&function_id, times->functions, times->count, sizeof(*times->functions), compare_id);
}

static uint32_t index_of(struct reading *reading, uint32_t function_id)
{
    unsigned slot = function_id % CACHE_SIZE;
    const struct function_time *found;

    if (reading->cache[slot].id == function_id)
        return reading->cache[slot].index;
    found = function_times_find(reading->times, function_id);
    reading->cache[slot].id = function_id;
    reading->cache[slot].index = found ? (uint32_t)(found - reading->times->functions) : UNKNOWN_FUNCTION;
    return reading->cache[slot].index;
}

/* ------------------------------------------------------------------------------------------ calls */

static int push(struct reading *reading, const struct event *event)
{
    if (array_reserve(&reading->frames, &reading->capacity, reading->depth + 1))
        return -ENOMEM;
    reading->frames[reading->depth++] = (struct frame){
        .begin = call_begin_of(event),
        .function = index_of(reading, event->function),
    };
    return 0;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static int add_call(struct reading *reading, const struct frame *frame, struct time_range duration)
{
    struct function_time *time = &reading->times->functions[frame->function];
    struct time_range self = time_range_without(duration, frame->inner);

    if (frame->begin.lossy)
        self.min_ns = 0; /* what it called meanwhile is not known */
    time_range_add(&time->total, duration);
    time_range_add(&time->self, self);
    if (!time->timed++)
        time->shortest = time->longest = duration;
    time->shortest.min_ns = least(time->shortest.min_ns, duration.min_ns);
    time->shortest.max_ns = least(time->shortest.max_ns, duration.max_ns);
    time->longest.min_ns = most(time->longest.min_ns, duration.min_ns);
    time->longest.max_ns = most(time->longest.max_ns, duration.max_ns);
    if (reading->detail == FUNCTION_TIMES_PERCENTILES)
        return durations_add(&time->durations, duration);
    return 0;
}

static int pop(struct reading *reading, const struct event *event)
{
    const struct frame *frame = &reading->frames[--reading->depth];
    struct time_range duration = call_duration(&frame->begin, event);

    if (reading->depth)
        time_range_add(&reading->frames[reading->depth - 1].inner, duration);
    if (frame->function == UNKNOWN_FUNCTION)
        return 0;
    reading->times->functions[frame->function].returned++;
    return call_is_timed(&frame->begin, event) ? add_call(reading, frame, duration) : 0;
}

/* The calls that are open where a stream begins, as in what a flight recorder has kept: they began at some
 * time before that. `depth`: how many there are around the event or, of a return, up to it. */
static int begin_inside(struct reading *reading, const struct event_iter *iter, const struct event *event,
                        size_t depth)
{
    size_t count = 0;
    const struct open_call *open = event_iter_open_calls(iter, &count);

    if (array_reserve(&reading->frames, &reading->capacity, depth + 1))
        return -ENOMEM;
    for (size_t i = 0; i < depth; i++) {
        const struct open_call *call = i < count ? &open[i] : event_iter_ended_call(iter);

        reading->frames[i] = (struct frame){
            .begin = {.ns = call->ns, .until_ns = UINT64_MAX, .lossy = true},
            .function = index_of(reading, call->function),
        };
    }
    reading->depth = depth;
    return 0;
}

static int add_event(struct reading *reading, const struct event_iter *iter, const struct event *event)
{
    size_t depth = event->depth + (size_t)(event->kind == EVENT_RETURN);
    int r = 0;

    if (depth != reading->depth)
        r = begin_inside(reading, iter, event, depth);
    if (r < 0)
        return r;
    if (event->kind == EVENT_CALL)
        return push(reading, event);
    if (event->kind == EVENT_RETURN)
        return pop(reading, event);
    for (size_t i = 0; i < reading->depth; i++)
        reading->frames[i].begin.lossy = true;
    return 0;
}

static int read_thread(struct reading *reading, struct tracestore *store, int64_t thread_id,
                       struct error *err)
{
    const struct event_range range = {.last_seq = UINT64_MAX, .no_sites = true};
    struct event_iter *iter = NULL;
    struct event event;
    int r = event_iter_open_db(tracestore_db(store), thread_id, &range, &iter, err);

    reading->depth = 0;
    while (r == 0 && (r = event_iter_next(iter, &event, err)) == 0)
        if (add_event(reading, iter, &event))
            r = error_no_memory(err);
    event_iter_free(iter);
    return r < 0 ? r : 0;
}

static int read_threads(struct reading *reading, struct tracestore *store, int64_t run_id, struct error *err)
{
    struct tracestore_thread *threads = NULL;
    size_t count = 0;
    int r = tracestore_threads(store, run_id, &threads, &count, err);

    for (size_t i = 0; i < count && r == 0; i++)
        if (threads[i].returns != TRACE_RETURNS_NONE)
            r = read_thread(reading, store, threads[i].thread_id, err);
    tracestore_threads_free(threads, count);
    return r;
}

/* ------------------------------------------------------------------------------------------ order */

static struct time_range ordered_by(const struct function_time *time, enum time_order order)
{
    switch (order) {
    case TIME_ORDER_TOTAL:
        return time->total;
    case TIME_ORDER_SELF:
        return time->self;
    case TIME_ORDER_P99:
        return time->p99;
    case TIME_ORDER_LONGEST:
        return time->longest;
    case TIME_ORDER_CALLS:
        break;
    }
    return (struct time_range){time->calls, time->calls};
}

int function_time_compare(const struct function_time *a, const struct function_time *b, enum time_order order)
{
    struct time_range left = ordered_by(a, order), right = ordered_by(b, order);
    bool known_left = order == TIME_ORDER_CALLS || function_time_is_known(a),
         known_right = order == TIME_ORDER_CALLS || function_time_is_known(b);

    if (known_left != known_right)
        return known_left ? -1 : 1;
    if (known_left && left.min_ns != right.min_ns)
        return left.min_ns > right.min_ns ? -1 : 1;
    if (known_left && left.max_ns != right.max_ns)
        return left.max_ns > right.max_ns ? -1 : 1;
    return (a->function_id > b->function_id) - (a->function_id < b->function_id);
}

/* ------------------------------------------------------------------------------------------ the run */

int function_times_of_every_event(struct tracestore *store, int64_t run_id, bool *ret_every,
                                  struct error *err)
{
    int64_t every = 0;
    int r =
        db_number(tracestore_db(store), "cannot read the run's tags", &every, err,
                  "SELECT EXISTS (SELECT 1 FROM tags WHERE run_id = ?1 AND key = 'times' AND value = 'full')",
                  "i", run_id);

    if (r == 0)
        *ret_every = every;
    return r;
}

static void make_percentiles(struct function_times *times)
{
    for (size_t i = 0; i < times->count; i++) {
        struct function_time *time = &times->functions[i];

        time->p50 = durations_percentile(&time->durations, 50);
        time->p90 = durations_percentile(&time->durations, 90);
        time->p99 = durations_percentile(&time->durations, 99);
    }
}

int function_times_read(struct tracestore *store, int64_t run_id, enum function_times_detail detail,
                        struct function_times *ret_times, struct error *err)
{
    struct function_times times = {0};
    struct reading reading = {.times = &times, .detail = detail};
    int r = function_times_of_every_event(store, run_id, &times.every_event, err);

    if (r == 0)
        r = read_functions(store, run_id, &times, err);
    if (r == 0 && detail != FUNCTION_TIMES_CALLS)
        r = read_threads(&reading, store, run_id, err);
    free(reading.frames);
    if (r < 0) {
        function_times_release(&times);
        return r;
    }
    if (detail == FUNCTION_TIMES_PERCENTILES)
        make_percentiles(&times);
    *ret_times = times;
    return 0;
}

void function_times_release(struct function_times *times)
{
    for (size_t i = 0; i < times->count; i++)
        durations_release(&times->functions[i].durations);
    free(times->functions);
    *times = (struct function_times){0};
}
