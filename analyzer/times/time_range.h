/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A time in nanoseconds that is known to lie between two. One of which both are equal is exact. */
#ifndef TRACECTL_ANALYZER_TIMES_TIME_RANGE_H
#define TRACECTL_ANALYZER_TIMES_TIME_RANGE_H

#include <stdbool.h>
#include <stdint.h>

struct time_range {
    uint64_t min_ns, max_ns; /* max_ns UINT64_MAX: without a limit */
};

static inline bool time_range_is_exact(struct time_range range)
{
    return range.min_ns == range.max_ns && range.max_ns != UINT64_MAX;
}

static inline uint64_t time_add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static inline void time_range_add(struct time_range *sum, struct time_range more)
{
    sum->min_ns = time_add(sum->min_ns, more.min_ns);
    sum->max_ns = time_add(sum->max_ns, more.max_ns);
}

/* What is left of `whole` without `part`, which lies inside it. */
static inline struct time_range time_range_without(struct time_range whole, struct time_range part)
{
    struct time_range left = {0, UINT64_MAX};

    if (whole.min_ns > part.max_ns)
        left.min_ns = whole.min_ns - part.max_ns;
    if (whole.max_ns != UINT64_MAX)
        left.max_ns = whole.max_ns > part.min_ns ? whole.max_ns - part.min_ns : 0;
    return left;
}

#endif
