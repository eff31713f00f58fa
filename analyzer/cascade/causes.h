/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The rules that make the must-happen-before graph of a trace (PCatch, section 2.1):
 *
 *   - a thread's events happen one after the other; those of a handler's execution are a line of their own,
 *     because the next event might have been handled first;
 *   - a thread or process is made before it begins, and over before somebody has joined or waited for it;
 *   - a signal is before the end of the wait that it ended: the first one after the wait began that no other
 *     wait has been given, or a broadcast; but not when the thread at once waits again, as it does in a loop
 *     around the wait when it was somebody else's turn;
 *   - the k-th post of a semaphore is before the end of the k-th wait that the initial value did not let
 *     through; the initial value is the least that what was seen allows;
 *   - all arrivals at a barrier are before each departure;
 *   - bytes are sent before they are received, where their positions in the connection are known: at both
 *     ends, of the same run;
 *   - an event is put into a queue before its handler begins: matched by the declared argument, first in,
 *     first out;
 *   - of two events for a pool of one thread, the one queued before begins before.
 *
 * Locks say nothing here: who gets one first is chance. contention.h has them.
 */
#ifndef TRACECTL_ANALYZER_CASCADE_CAUSES_H
#define TRACECTL_ANALYZER_CASCADE_CAUSES_H

#include "analyzer/cascade/handlers.h"
#include "analyzer/cascade/happens_before.h"
#include "analyzer/cascade/trace.h"

struct causality {
    struct hb_graph *graph;
    uint32_t *node_of;  /* by event */
    uint32_t *event_of; /* by node; TRACE_NONE: a node that stands for none */
    size_t event_of_capacity;
    uint32_t *handler_of; /* by line: number in struct handlers, TRACE_NONE: a thread */
    uint32_t *thread_of;  /* by line; TRACE_NONE: of no thread */
    size_t line_capacity, thread_capacity;
    uint32_t *begun; /* by handler: a node just before its beginning, which those of events queued later come
                        after; HB_NONE: who queued it is not known */
    uint64_t unmatched; /* receives whose bytes were sent by nobody that was recorded */
};

/* -ENOMEM, -EOVERFLOW; release in any case. */
int causality_find(const struct cascade_trace *trace, const struct handlers *handlers,
                   struct causality *ret_causality);
void causality_release(struct causality *causality);

/* Whether one event must be over before another one begins; whether neither must. */
static inline bool event_before(const struct causality *causality, uint32_t a, uint32_t b)
{
    return hb_before(causality->graph, causality->node_of[a], causality->node_of[b]);
}

static inline bool events_concurrent(const struct causality *causality, uint32_t a, uint32_t b)
{
    return hb_concurrent(causality->graph, causality->node_of[a], causality->node_of[b]);
}

#endif
