/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How long the functions of a run took: sums, percentiles and the longest call, each exact or a range, in one
 * pass over the run's events.
 *
 * A call's duration lies between the times of its two events, of which one without a time of its own (an
 * inferred return) has an interval; it is the one that the table `calls` has (docs/sql.md). Only calls that
 * returned count. A call during which events were lost has no lower bound: what ended may be another call of the
 * same function.
 */
#ifndef TRACECTL_ANALYZER_TIMES_FUNCTION_TIMES_H
#define TRACECTL_ANALYZER_TIMES_FUNCTION_TIMES_H

#include <stdbool.h>
#include <stdint.h>

#include "analyzer/times/durations.h"

struct tracestore;
struct error;

struct function_time {
    uint32_t function_id;
    uint64_t calls;          /* recorded */
    uint64_t returned;       /* of them: all below is about these */
    uint64_t timed;          /* of those: with a time of the call and of the return */
    struct time_range total; /* from its calls to their returns; a recursive call counts again */
    struct time_range self;  /* without the calls that it made */
    struct time_range shortest, longest;
    struct time_range p50, p90, p99; /* zeros without FUNCTION_TIMES_PERCENTILES */
    struct durations durations;      /* with FUNCTION_TIMES_PERCENTILES */
};

/* Whether a time of the function is known at all, as an exact one or as a range. */
static inline bool function_time_is_known(const struct function_time *time)
{
    return time->returned && time->timed == time->returned;
}

/* Whether all times of the function are exact. */
static inline bool function_time_is_exact(const struct function_time *time)
{
    return function_time_is_known(time) && time_range_is_exact(time->total);
}

/* All zero knows nothing. */
struct function_times {
    struct function_time *functions; /* by function_id */
    size_t count, capacity;
    bool every_event; /* the recorder kept the time of each event; otherwise most times are wide ranges */
};

/* What to read. */
enum function_times_detail {
    FUNCTION_TIMES_CALLS,       /* how often functions were called: no event is decoded */
    FUNCTION_TIMES_SUMS,        /* also sums, the shortest and the longest call */
    FUNCTION_TIMES_PERCENTILES, /* also durations, p50, p90 and p99: 4 to 12 bytes of memory a call */
};

/* Reads the whole run.. Release what a success returned. Fails with
 * -ENOMEM or what reading the store met. */
int function_times_read(struct tracestore *store, int64_t run_id, enum function_times_detail detail,
                        struct function_times *ret_times, struct error *err);
void function_times_release(struct function_times *times);

/* Whether the run has the time of each event: reads a tag only. */
int function_times_of_every_event(struct tracestore *store, int64_t run_id, bool *ret_every,
                                  struct error *err);

/* What functions can be ordered by. */
enum time_order {
    TIME_ORDER_CALLS,
    TIME_ORDER_TOTAL,
    TIME_ORDER_SELF,
    TIME_ORDER_P99,
    TIME_ORDER_LONGEST,
};

/* As for qsort: the largest first, ranges by their lower bounds and then by their upper ones, what is not known
 * last; then by function_id. */
int function_time_compare(const struct function_time *a, const struct function_time *b,
                          enum time_order order);

/* NULL: the function was not called. */
const struct function_time *function_times_find(const struct function_times *times, uint32_t function_id);

#endif
