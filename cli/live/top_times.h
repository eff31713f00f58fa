/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How long the functions of a run took, where each event has its time. */
#ifndef TRACECTL_CLI_LIVE_TOP_TIMES_H
#define TRACECTL_CLI_LIVE_TOP_TIMES_H

#include <stdbool.h>
#include <stdint.h>

#include "store/api/tracestore.h"

/* A time that is known to lie between two; one of which both are equal is exact. */
struct time_range {
    uint64_t min_ns, max_ns; /* UINT64_MAX: not known */
};

struct function_time {
    struct time_range total; /* from its calls to their returns; a recursive call counts again */
    struct time_range self;  /* without the calls that it made, as far as they are known */
    uint64_t calls;          /* that are counted here: their returns are known */
};

/* All zero knows nothing. */
struct top_times {
    struct timed_function *functions; /* a hash by function_id, which a damaged store may have of any size */
    bool known;                       /* the run has a time on each event */
};

/* Reads the whole run if it has times. Calls that have not returned count nothing. */
int top_times_read(struct tracestore *store, int64_t run_id, struct top_times *ret_times, struct error *err);
void top_times_release(struct top_times *times);

/* Never NULL; zeros for a function that was not called. */
const struct function_time *top_times_of(const struct top_times *times, int64_t function_id);

#endif
