/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The executions of events' handlers, and the pools of threads that they wait for: threads that run a handler
 * of the same function, or on which two handlers run, are one pool (PCatch, section 4.1.2; how many threads
 * there are does not matter, since that is a matter of configuration). A handler called by a handler is a
 * part of it.
 */
#ifndef TRACECTL_ANALYZER_CASCADE_HANDLERS_H
#define TRACECTL_ANALYZER_CASCADE_HANDLERS_H

#include "analyzer/cascade/trace.h"

struct handler {
    uint32_t thread, pool;
    uint32_t first, last; /* events: its beginning, and its end, or the last that was seen of it */
    uint64_t function;    /* number of the declared function */
};

struct handlers {
    struct handler *handlers; /* by their first events */
    size_t count, capacity;
    uint32_t *pools;        /* by thread; TRACE_NONE: it runs no handler */
    uint32_t *pool_threads; /* by pool: how many threads it has */
};

/* -ENOMEM; release in any case. */
int handlers_find(const struct cascade_trace *trace, struct handlers *ret_handlers);
void handlers_release(struct handlers *handlers);

#endif
