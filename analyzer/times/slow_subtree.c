/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/times/slow_subtree.h"

#include <errno.h>
#include <stdlib.h>

#include "analyzer/times/call_duration.h"
#include "base/array.h"
#include "base/error.h"
#include "store/segment/event_iter.h"

/* A call that is open. */
struct frame {
    struct call_begin begin;
    uint32_t node; /* SLOW_NO_NODE: too deep to be kept */
    struct time_range inner;
};

struct walk {
    struct slow_call *call;
    size_t keep; /* levels that have nodes, the call's own included */
    struct frame *frames;
    size_t depth, capacity;
};

/* ------------------------------------------------------------------------------------------ nodes */

/* The child of `parent` for a function, which becomes the first one: calls repeat. */
static uint32_t find_child(struct slow_call *call, uint32_t parent, uint32_t function)
{
    uint32_t *link = &call->nodes[parent].child;

    while (*link != SLOW_NO_NODE) {
        uint32_t at = *link;
        struct slow_node *node = &call->nodes[at];

        if (node->function == function) {
            *link = node->sibling;
            node->sibling = call->nodes[parent].child;
            call->nodes[parent].child = at;
            return at;
        }
        link = &node->sibling;
    }
    return SLOW_NO_NODE;
}

/* The node of a call inside `parent` (SLOW_NO_NODE: the slow call itself). -ENOMEM. */
static int node_of(struct slow_call *call, uint32_t parent, uint32_t function, uint32_t *ret_node)
{
    uint32_t node = parent == SLOW_NO_NODE ? SLOW_NO_NODE : find_child(call, parent, function);

    if (node == SLOW_NO_NODE) {
        if (array_reserve(&call->nodes, &call->node_capacity, call->node_count + 1))
            return -ENOMEM;
        node = (uint32_t)call->node_count++;
        call->nodes[node] =
            (struct slow_node){.function = function, .child = SLOW_NO_NODE, .sibling = SLOW_NO_NODE};
        if (parent != SLOW_NO_NODE) {
            call->nodes[node].sibling = call->nodes[parent].child;
            call->nodes[parent].child = node;
        }
    }
    call->nodes[node].calls++;
    *ret_node = node;
    return 0;
}

/* ------------------------------------------------------------------------------------------ events */

static int begin_call(struct walk *walk, const struct event *event)
{
    uint32_t parent = walk->depth ? walk->frames[walk->depth - 1].node : SLOW_NO_NODE, node = SLOW_NO_NODE;

    if (array_reserve(&walk->frames, &walk->capacity, walk->depth + 1))
        return -ENOMEM;
    if (walk->depth < walk->keep && node_of(walk->call, parent, event->function, &node))
        return -ENOMEM;
    walk->frames[walk->depth++] = (struct frame){.begin = call_begin_of(event), .node = node};
    return 0;
}

static void end_call(struct walk *walk, const struct event *event)
{
    const struct frame *frame = &walk->frames[--walk->depth];
    struct time_range duration = call_duration(&frame->begin, event), self;
    struct slow_node *node;

    if (walk->depth)
        time_range_add(&walk->frames[walk->depth - 1].inner, duration);
    if (frame->node == SLOW_NO_NODE)
        return;
    self = time_range_without(duration, frame->inner);
    if (frame->begin.lossy)
        self.min_ns = 0;
    node = &walk->call->nodes[frame->node];
    node->returned++;
    time_range_add(&node->total, duration);
    time_range_add(&node->self, self);
}

static void lose(struct walk *walk)
{
    walk->call->lost++;
    for (size_t i = 0; i < walk->depth; i++)
        walk->frames[i].begin.lossy = true;
}

static int add_event(struct walk *walk, const struct event *event)
{
    if (event->kind == EVENT_LOST)
        lose(walk);
    else if (event->kind == EVENT_CALL)
        return begin_call(walk, event);
    else if (!walk->depth)
        return -EBADMSG;
    else
        end_call(walk, event);
    return 0;
}

/* ------------------------------------------------------------------------------------------ the call */

/* `event` is the call itself, which `iter` gave last; 1: it is not, as the recorder has not kept it. */
static int read_callers(struct slow_call *call, const struct event_iter *iter, const struct event *event)
{
    size_t count = 0;
    const struct open_call *open = event_iter_open_calls(iter, &count);

    if (event->kind != EVENT_CALL || event->seq != call->seq || !count)
        return event->seq > call->seq ? 1 : -EBADMSG;
    call->ns = event->ns;
    call->ns_error = event->ns_error;
    call->callers = calloc(count, sizeof(*call->callers));
    if (!call->callers)
        return -ENOMEM;
    call->caller_count = count - 1;
    for (size_t i = 0; i + 1 < count; i++)
        call->callers[i] = open[count - 2 - i].function;
    return 0;
}

static int read_events(struct walk *walk, struct event_iter *iter, struct error *err)
{
    struct event event;
    int r = event_iter_next(iter, &event, err);

    if (!r)
        r = read_callers(walk->call, iter, &event);
    if (r == 1)
        return 0;
    while (!r && !(r = add_event(walk, &event)) && walk->depth)
        r = event_iter_next(iter, &event, err);
    if (r == -ENOMEM)
        return error_no_memory(err);
    if (r == -EBADMSG || r == 1)
        return error_say(
            err, -EBADMSG,
            "cannot read the call at event %llu of thread %lld: the stream is damaged there (run "
            "'tracectl verify' for details)",
            (unsigned long long)walk->call->seq, (long long)walk->call->thread_id);
    return r;
}

/* Most time first: as they are ordered by function_time_compare(). */
static bool goes_before(const struct slow_node *a, const struct slow_node *b)
{
    if (a->total.min_ns != b->total.min_ns)
        return a->total.min_ns > b->total.min_ns;
    if (a->total.max_ns != b->total.max_ns)
        return a->total.max_ns > b->total.max_ns;
    return a->calls != b->calls ? a->calls > b->calls : a->function < b->function;
}

/* Two ordered lists of siblings become one. */
static uint32_t merge(struct slow_node *nodes, uint32_t a, uint32_t b)
{
    uint32_t first = SLOW_NO_NODE, *link = &first;

    while (a != SLOW_NO_NODE && b != SLOW_NO_NODE) {
        uint32_t *taken = goes_before(&nodes[b], &nodes[a]) ? &b : &a;

        *link = *taken;
        link = &nodes[*taken].sibling;
        *taken = *link;
    }
    *link = a != SLOW_NO_NODE ? a : b;
    return first;
}

/* Sorts a list of siblings from the bottom up: list i has 2^i nodes, or none. */
static uint32_t sort(struct slow_node *nodes, uint32_t list)
{
    uint32_t sorted[32], all = SLOW_NO_NODE;

    for (int i = 0; i < 32; i++)
        sorted[i] = SLOW_NO_NODE;
    while (list != SLOW_NO_NODE) {
        uint32_t one = list;
        int i = 0;

        list = nodes[one].sibling;
        nodes[one].sibling = SLOW_NO_NODE;
        for (; sorted[i] != SLOW_NO_NODE; i++) {
            one = merge(nodes, sorted[i], one);
            sorted[i] = SLOW_NO_NODE;
        }
        sorted[i] = one;
    }
    for (int i = 0; i < 32; i++)
        all = merge(nodes, sorted[i], all);
    return all;
}

int slow_subtree_read(sqlite3 *db, struct slow_call *call, size_t depth, struct error *err)
{
    const struct event_range range = {.first_seq = call->seq, .last_seq = call->end_seq, .no_sites = true};
    struct walk walk = {.call = call, .keep = depth < SIZE_MAX ? depth + 1 : depth};
    struct event_iter *iter = NULL;
    int r = event_iter_open_db(db, call->thread_id, &range, &iter, err);

    if (!r)
        r = read_events(&walk, iter, err);
    event_iter_free(iter);
    free(walk.frames);
    for (size_t i = 0; i < call->node_count && !r; i++)
        call->nodes[i].child = sort(call->nodes, call->nodes[i].child);
    return r;
}
