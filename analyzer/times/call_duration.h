/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How long a call took, from its two events: the duration that the table `calls` has (docs/sql.md). */
#ifndef TRACECTL_ANALYZER_TIMES_CALL_DURATION_H
#define TRACECTL_ANALYZER_TIMES_CALL_DURATION_H

#include <stdbool.h>

#include "analyzer/times/time_range.h"
#include "store/api/tracestore.h"

/* When a call began, and what its time is worth. */
struct call_begin {
    uint64_t ns, until_ns; /* it began between them; both 0: not known when */
    bool lossy; /* events were lost since it began: what ended may be another call of the function */
};

static inline struct call_begin call_begin_of(const struct event *call)
{
    return (struct call_begin){.ns = call->ns, .until_ns = time_add(call->ns, call->ns_error)};
}

static inline bool call_is_timed(const struct call_begin *begin, const struct event *end)
{
    return begin->ns && end->ns;
}

/* From 0 on without a limit where one of the events has no time. */
static inline struct time_range call_duration(const struct call_begin *begin, const struct event *end)
{
    struct time_range duration = {0, UINT64_MAX};

    if (!call_is_timed(begin, end))
        return duration;
    if (!begin->lossy && end->ns > begin->until_ns)
        duration.min_ns = end->ns - begin->until_ns;
    if (end->ns_error < INT64_MAX - end->ns)
        duration.max_ns = end->ns + end->ns_error - begin->ns;
    return duration;
}

#endif
