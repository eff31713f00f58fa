/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/cascade/handlers.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"

void handlers_release(struct handlers *handlers)
{
    free(handlers->handlers);
    free(handlers->pools);
    free(handlers->pool_threads);
    *handlers = (struct handlers){0};
}

/* ------------------------------------------------------------------------------------------ executions */

/* The handler that each thread is in. */
struct inside {
    uint32_t handler, depth;
};

static int follow(struct handlers *handlers, struct inside *inside, const struct process_event *event,
                  uint32_t number)
{
    struct inside *here = &inside[event->thread];

    if (event->kind == SYNC_HANDLER && event->phase == SYNC_BEGIN && here->depth++ == 0) {
        if (array_reserve(&handlers->handlers, &handlers->capacity, handlers->count + 1) < 0)
            return -ENOMEM;
        here->handler = (uint32_t)handlers->count;
        handlers->handlers[handlers->count++] =
            (struct handler){event->thread, TRACE_NONE, number, number, event->other};
    }
    if (here->depth)
        handlers->handlers[here->handler].last = number;
    if (event->kind == SYNC_HANDLER && event->phase == SYNC_END && here->depth)
        here->depth--;
    return 0;
}

/* ------------------------------------------------------------------------------------------ pools */

static uint32_t root(uint32_t *parents, uint32_t thread)
{
    while (parents[thread] != thread)
        thread = parents[thread] = parents[parents[thread]];
    return thread;
}

static int compare_functions(const void *a, const void *b, void *context)
{
    const struct handlers *handlers = context;
    const struct handler *first = &handlers->handlers[*(const uint32_t *)a],
                         *second = &handlers->handlers[*(const uint32_t *)b];

    if (first->function != second->function)
        return first->function < second->function ? -1 : 1;
    return *(const uint32_t *)a < *(const uint32_t *)b ? -1 : 1;
}

/* Makes one pool of the threads of a process that run the same function. */
static int unite(struct handlers *handlers, const struct cascade_trace *trace, uint32_t *parents)
{
    AUTO_FREE uint32_t *order = calloc(handlers->count + 1, sizeof(*order));
    AUTO_FREE uint32_t *first = calloc(trace->process_count + 1, sizeof(*first)); /* thread + 1 */

    if (!order || !first)
        return -ENOMEM;
    for (uint32_t i = 0; i < handlers->count; i++)
        order[i] = i;
    qsort_r(order, handlers->count, sizeof(*order), compare_functions, handlers);
    for (size_t i = 0; i < handlers->count; i++) {
        const struct handler *handler = &handlers->handlers[order[i]];
        uint32_t process = trace->threads[handler->thread].process;

        if (i && handler->function != handlers->handlers[order[i - 1]].function)
            for (size_t j = 0; j < trace->process_count; j++)
                first[j] = 0;
        if (first[process])
            parents[root(parents, handler->thread)] = root(parents, first[process] - 1);
        else
            first[process] = handler->thread + 1;
    }
    return 0;
}

static int find_pools(struct handlers *handlers, const struct cascade_trace *trace)
{
    AUTO_FREE uint32_t *parents = calloc(trace->thread_count + 1, sizeof(*parents));

    handlers->pools = calloc(trace->thread_count + 1, sizeof(*handlers->pools));
    handlers->pool_threads = calloc(trace->thread_count + 1, sizeof(*handlers->pool_threads));
    if (!parents || !handlers->pools || !handlers->pool_threads)
        return -ENOMEM;
    for (uint32_t i = 0; i < trace->thread_count; i++) {
        parents[i] = i;
        handlers->pools[i] = TRACE_NONE;
    }
    if (unite(handlers, trace, parents) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < handlers->count; i++) {
        struct handler *handler = &handlers->handlers[i];

        handler->pool = root(parents, handler->thread);
        if (handlers->pools[handler->thread] == TRACE_NONE)
            handlers->pool_threads[handler->pool]++;
        handlers->pools[handler->thread] = handler->pool;
    }
    return 0;
}

int handlers_find(const struct cascade_trace *trace, struct handlers *ret_handlers)
{
    AUTO_FREE struct inside *inside = calloc(trace->thread_count + 1, sizeof(*inside));
    int r = inside ? 0 : -ENOMEM;

    *ret_handlers = (struct handlers){0};
    for (uint32_t i = 0; i < trace->count && r == 0; i++)
        r = follow(ret_handlers, inside, &trace->events[i], i);
    return r < 0 ? r : find_pools(ret_handlers, trace);
}
