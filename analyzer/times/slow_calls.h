/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The slowest calls of a function: each with the calls that it was in, and with what it called, calls of one
 * function below the same calls summed up. Only calls that returned are compared, by what they took at least and
 * then at most: with inferred returns that is a range (analyzer/times/call_duration.h).
 */
#ifndef TRACECTL_ANALYZER_TIMES_SLOW_CALLS_H
#define TRACECTL_ANALYZER_TIMES_SLOW_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyzer/times/time_range.h"

struct tracestore;
struct error;

#define SLOW_NO_NODE UINT32_MAX

/* All calls of a function that the same chain of calls led to. Members are indices of nodes. */
struct slow_node {
    uint32_t function;       /* function_id */
    uint32_t child, sibling; /* SLOW_NO_NODE: none; children are ordered, the longest first */
    uint64_t calls;
    uint64_t returned; /* of them; the times below are about these */
    struct time_range total, self;
};

struct slow_call {
    int64_t thread_id;
    uint64_t seq, end_seq; /* of its two events */
    uint64_t ns, ns_error; /* it began in [ns, ns + ns_error]; ns 0: not known when */
    struct time_range duration;
    uint64_t lost;     /* places in it where events were lost: what it called is then incomplete */
    uint32_t *callers; /* function_ids, the innermost first */
    size_t caller_count;
    struct slow_node
        *nodes; /* the first is the call itself; none: its beginning was not kept (record --flight) */
    size_t node_count, node_capacity;
};

/* All zero has no calls. */
struct slow_calls {
    struct slow_call *calls; /* the slowest first */
    size_t count;
    uint64_t returned, unreturned; /* calls of the function in the run that returned, and that did not */
    uint64_t unknown;              /* of those that returned: calls without any time */
};

/* Reads the `most` (at least 1) slowest calls of the functions with this name, as the image spells it or demangled.
 * What they called is kept up to `depth` levels below them; deeper calls are in the times of the calls around
 * them. Release what a success returned. Fails with -ENOMEM or what reading the store met. */
int slow_calls_read(struct tracestore *store, int64_t run_id, const char *function, size_t most, size_t depth,
                    struct slow_calls *ret_calls, struct error *err);
void slow_calls_release(struct slow_calls *calls);

#endif
