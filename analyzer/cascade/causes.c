/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/cascade/causes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "analyzer/cascade/channels.h"
#include "analyzer/cascade/waited.h"
#include "base/array.h"
#include "base/cleanup.h"

enum {
    MOST_CAUSES = 4096,   /* of one node */
    MOST_SENDS = 16,      /* that one receive is given */
    MOST_SIGNALS = 64,    /* of a condition that are remembered */
    MOST_QUEUE_LINES = 16 /* of a pool's thread: who queued for it, the youngest ones */
};

/* Of one who queues events for a pool of one thread: the youngest event of his that began, and the line of
 * such beginnings. They are a line of their own, so that who knows of the last one knows of all, and need not
 * know of each handler. */
struct queue_line {
    uint32_t from, line, enqueued, began;
};

struct thread_state {
    uint32_t line, base_line; /* of the handler it is in, and its own */
    uint32_t depth;           /* of handlers */
    uint32_t begin, last;     /* its first node, and the youngest */
    uint32_t wait_began;      /* event: the wait on a condition that is under way */
    uint32_t woken;           /* the node of the last wait outside handlers */
    bool over;                /* its end was seen; the exit of its process may follow */
    size_t seen;              /* of its events */
    struct hb_cause *handled; /* the last nodes of its handlers */
    size_t handled_count, handled_capacity;
    struct queue_line queues[MOST_QUEUE_LINES];
    size_t queue_count;
};

struct finder {
    const struct cascade_trace *trace;
    const struct handlers *handlers;
    struct causality *causality;
    struct channels *channels;
    struct waited *waited;
    struct waited nothing; /* for events that nobody waits for */
    struct thread_state *threads;
    size_t next_handler;
    struct hb_cause causes[MOST_CAUSES]; /* of the present event */
    size_t cause_count;
};

/* ------------------------------------------------------------------------------------------ marks */

static void add_cause(struct finder *finder, uint32_t node, enum hb_edge_kind kind)
{
    if (node != HB_NONE && finder->cause_count < MOST_CAUSES)
        finder->causes[finder->cause_count++] = (struct hb_cause){node, kind};
}

/* The oldest mark is used up. */
static void take_first(struct finder *finder, struct waited *waited, enum hb_edge_kind kind)
{
    if (waited->first < waited->count)
        add_cause(finder, waited->marks[waited->first++].node, kind);
}

/* The first signal after the wait began that nobody else was given. */
static void take_signal(struct finder *finder, const struct waited *waited, uint32_t began)
{
    for (size_t i = waited->first; i < waited->count; i++) {
        struct mark *mark = &waited->marks[i];

        if (mark->event < began || mark->taken)
            continue;
        mark->taken = finder->trace->events[mark->event].kind == SYNC_COND_SIGNAL;
        add_cause(finder, mark->node, HB_SIGNAL);
        return;
    }
}

/* Those who have arrived continue together: the first one who continues closes the round. */
static void depart(struct finder *finder, struct waited *waited, uint32_t thread)
{
    size_t own = waited->count;
    uint32_t round;

    while (own > waited->first && finder->trace->events[waited->marks[own - 1].event].thread != thread)
        own--;
    if (own == waited->first)
        return;
    round = waited->marks[own - 1].round;
    if (round == waited->round)
        waited->round++;
    while (waited->marks[waited->first].round + 1 < round)
        waited->first++;
    for (size_t i = waited->first; i < waited->count; i++)
        if (waited->marks[i].round == round && i != own - 1)
            add_cause(finder, waited->marks[i].node, HB_BARRIER);
}

/* ------------------------------------------------------------------------------------------ lines */

static int new_line(struct finder *finder, uint32_t thread, uint32_t handler, uint32_t *ret_line)
{
    struct causality *causality = finder->causality;
    uint32_t line;
    int r = hb_graph_line(causality->graph, handler != TRACE_NONE, &line);

    if (r < 0)
        return r;
    if (array_reserve(&causality->handler_of, &causality->line_capacity, (size_t)line + 1) < 0 ||
        array_reserve(&causality->thread_of, &causality->thread_capacity, (size_t)line + 1) < 0)
        return -ENOMEM;
    causality->handler_of[line] = handler;
    causality->thread_of[line] = thread;
    *ret_line = line;
    return 0;
}

static int add_node(struct finder *finder, uint32_t line, const struct hb_cause *causes, size_t count,
                    uint32_t event, uint32_t *ret_node)
{
    struct causality *causality = finder->causality;
    int r = hb_graph_add(causality->graph, line, causes, count, ret_node);

    if (r < 0)
        return r;
    if (array_reserve(&causality->event_of, &causality->event_of_capacity, (size_t)*ret_node + 1) < 0)
        return -ENOMEM;
    causality->event_of[*ret_node] = event;
    return 0;
}

/* The line for those who queue for the thread as the line `from` does. */
static int get_queue_line(struct finder *finder, struct thread_state *state, uint32_t from,
                          struct queue_line **ret_queue)
{
    struct queue_line *queue;

    for (size_t i = 0; i < state->queue_count; i++)
        if (state->queues[i].from == from) {
            *ret_queue = &state->queues[i];
            return 0;
        }
    if (state->queue_count == MOST_QUEUE_LINES) {
        memmove(state->queues, state->queues + 1, (MOST_QUEUE_LINES - 1) * sizeof(*state->queues));
        state->queue_count--;
    }
    queue = &state->queues[state->queue_count];
    *queue = (struct queue_line){.from = from, .enqueued = HB_NONE, .began = HB_NONE};
    state->queue_count++;
    *ret_queue = queue;
    return new_line(finder, TRACE_NONE, TRACE_NONE, &queue->line);
}

/* ------------------------------------------------------------------------------------------ causes */

static uint32_t last_node(const struct finder *finder, uint32_t process, uint64_t number)
{
    uint32_t thread =
        number > UINT32_MAX ? TRACE_NONE : cascade_trace_thread(finder->trace, process, (uint32_t)number);

    return thread == TRACE_NONE ? HB_NONE : finder->threads[thread].last;
}

static uint32_t process_of_pid(const struct finder *finder, uint64_t pid)
{
    for (uint32_t i = 0; i < finder->trace->process_count; i++)
        if ((uint64_t)finder->trace->processes[i].pid == pid)
            return i;
    return TRACE_NONE;
}

/* Who begins was made before; where that was not seen, what its maker did before is still before it. */
static void cause_begin(struct finder *finder, const struct waited *made, uint32_t maker)
{
    add_cause(finder, made->made != HB_NONE ? made->made : maker, HB_CREATE);
}

static void cause_receive(struct finder *finder, const struct process_event *event)
{
    uint32_t nodes[MOST_SENDS];
    size_t count = channels_receive(finder->channels, event, nodes, MOST_SENDS);

    for (size_t i = 0; i < count; i++)
        add_cause(finder, nodes[i], HB_MESSAGE);
    if (!count && event->result > 0)
        finder->causality->unmatched++;
}

/* The beginning of the handler `number`, whose event was queued at `enqueued`: after the beginnings of those
 * queued before, where one thread handles them all. */
static int note_beginning(struct finder *finder, struct thread_state *state, uint32_t thread,
                          uint32_t enqueued)
{
    const struct hb_graph *graph = finder->causality->graph;
    struct hb_cause causes[MOST_QUEUE_LINES + 1] = {{enqueued, HB_INSIDE}};
    struct queue_line *queue;
    size_t count = 1;
    int r;

    if (enqueued == HB_NONE || finder->handlers->pool_threads[finder->handlers->pools[thread]] != 1)
        return 0;
    r = get_queue_line(finder, state, hb_line_of(graph, enqueued), &queue);
    if (r < 0)
        return r;
    for (size_t i = 0; i < state->queue_count; i++)
        if (&state->queues[i] != queue && state->queues[i].enqueued != HB_NONE &&
            hb_before(graph, state->queues[i].enqueued, enqueued))
            causes[count++] = (struct hb_cause){state->queues[i].began, HB_FIFO};
    queue->enqueued = enqueued;
    r = add_node(finder, queue->line, causes, count, TRACE_NONE, &queue->began);
    finder->causality->begun[finder->next_handler] = queue->began;
    return r;
}

/* What a handler does that was recognised comes after the wait before it, and after what ended that. */
static void cause_recognised(struct finder *finder, uint32_t woken)
{
    size_t count = 0;
    const struct hb_edge *edges = NULL;

    if (woken == HB_NONE)
        return;
    edges = hb_causes(finder->causality->graph, woken, &count);
    for (size_t i = 0; i < count; i++)
        add_cause(finder, edges[i].from, edges[i].kind);
    add_cause(finder, woken, HB_INSIDE);
}

/* A handler begins: after its event was queued, and after the beginnings of those queued before. */
static int cause_handler(struct finder *finder, const struct process_event *event, struct waited *queued)
{
    struct thread_state *state = &finder->threads[event->thread];
    uint32_t enqueued = HB_NONE;
    int r;

    if (event->object && queued->first < queued->count)
        enqueued = queued->marks[queued->first++].node;
    r = note_beginning(finder, state, event->thread, enqueued);
    add_cause(finder, enqueued, HB_ENQUEUE);
    add_cause(finder, finder->causality->begun[finder->next_handler], HB_FIFO);
    add_cause(finder, state->begin, HB_INSIDE);
    if (event->other >= TRACE_RECOGNISED)
        cause_recognised(finder, state->woken);
    return r;
}

/* Whether the thread at once waits for the same condition again: then it was not the last signal that it
 * needed to continue, but a later one. */
static bool waits_again(const struct finder *finder, const struct process_event *event)
{
    const struct trace_thread *thread = &finder->trace->threads[event->thread];
    size_t next = finder->threads[event->thread].seen;
    const struct process_event *after;

    if (next >= thread->count)
        return false;
    after = &finder->trace->events[thread->events[next]];
    return (after->kind == SYNC_COND_WAIT || after->kind == SYNC_COND_TIMEDWAIT) &&
           after->phase == SYNC_BEGIN && after->object == event->object;
}

/* What the event's node comes after, in finder->causes, apart from its line. */
static int find_causes(struct finder *finder, const struct process_event *event, struct waited *waited)
{
    struct thread_state *state = &finder->threads[event->thread];
    uint32_t process = finder->trace->threads[event->thread].process;

    finder->cause_count = 0;
    switch ((enum sync_event_kind)event->kind) {
    case SYNC_THREAD_BEGIN:
        cause_begin(finder, waited,
                    event->other == SYNC_UNKNOWN_THREAD ? HB_NONE : last_node(finder, process, event->other));
        break;
    case SYNC_PROCESS_BEGIN:
        process = process_of_pid(finder, event->other);
        cause_begin(finder, waited, process == TRACE_NONE ? HB_NONE : last_node(finder, process, 0));
        break;
    case SYNC_THREAD_JOIN:
    case SYNC_PROCESS_WAIT:
        add_cause(finder, waited->ended, HB_JOIN);
        break;
    case SYNC_COND_WAIT:
    case SYNC_COND_TIMEDWAIT:
        if (event->phase == SYNC_END && event->result == 0 && state->wait_began != TRACE_NONE &&
            !waits_again(finder, event))
            take_signal(finder, waited, state->wait_began);
        break;
    case SYNC_SEM_WAIT:
    case SYNC_SEM_TRYWAIT:
    case SYNC_SEM_TIMEDWAIT:
        take_first(finder, waited, HB_POST);
        break;
    case SYNC_BARRIER_WAIT:
        if (event->phase == SYNC_END)
            depart(finder, waited, event->thread);
        break;
    case SYNC_RECEIVE:
        cause_receive(finder, event);
        break;
    case SYNC_DEQUEUE:
        if (!finder->handlers->count)
            take_first(finder, waited, HB_ENQUEUE);
        break;
    case SYNC_HANDLER:
        if (event->phase == SYNC_BEGIN && state->depth == 0)
            return cause_handler(finder, event, waited);
        break;
    case SYNC_THREAD_END:
        for (size_t i = 0; i < state->handled_count; i++)
            add_cause(finder, state->handled[i].node, HB_INSIDE);
        break;
    default:
        break;
    }
    return 0;
}

/* ------------------------------------------------------------------------------------------ effects */

/* What others will wait for. */
static int leave_mark(struct finder *finder, const struct process_event *event, struct waited *waited,
                      uint32_t number, uint32_t node)
{
    struct thread_state *state = &finder->threads[event->thread];

    switch ((enum sync_event_kind)event->kind) {
    case SYNC_THREAD_CREATE:
    case SYNC_PROCESS_FORK:
        waited->made = node;
        return 0;
    case SYNC_THREAD_END:
    case SYNC_PROCESS_EXIT:
        waited->ended = node;
        state->over = true;
        return hb_graph_end(finder->causality->graph, state->line);
    case SYNC_COND_WAIT:
    case SYNC_COND_TIMEDWAIT:
        state->wait_began = event->phase == SYNC_BEGIN ? number : TRACE_NONE;
        return 0;
    case SYNC_COND_SIGNAL:
    case SYNC_COND_BROADCAST:
        while (waited->count - waited->first >= MOST_SIGNALS)
            waited->first++;
        return waited_mark(waited, number, node);
    case SYNC_SEM_POST:
    case SYNC_ENQUEUE:
        return waited_mark(waited, number, node);
    case SYNC_BARRIER_WAIT:
        return event->phase == SYNC_BEGIN ? waited_mark(waited, number, node) : 0;
    case SYNC_SEND:
        return channels_send(finder->channels, event, node);
    default:
        return 0;
    }
}

/* ------------------------------------------------------------------------------------------ events */

static int begin_handler(struct finder *finder, struct thread_state *state, uint32_t thread)
{
    if (state->depth++)
        return 0;
    return new_line(finder, thread, (uint32_t)finder->next_handler++, &state->line);
}

static int end_handler(struct finder *finder, struct thread_state *state, uint32_t node)
{
    int r;

    if (!state->depth || --state->depth)
        return 0;
    r = hb_graph_end(finder->causality->graph, state->line);
    state->line = state->base_line;
    if (r < 0 || array_reserve(&state->handled, &state->handled_capacity, state->handled_count + 1) < 0)
        return -ENOMEM;
    if (state->handled_count == MOST_CAUSES)
        state->handled_count = 0;
    state->handled[state->handled_count++] = (struct hb_cause){node, HB_INSIDE};
    return 0;
}

static int get_line(struct finder *finder, struct thread_state *state, uint32_t thread)
{
    if (state->base_line != HB_NONE && !state->over)
        return 0;
    state->over = false;
    state->line = HB_NONE;
    if (new_line(finder, thread, TRACE_NONE, &state->base_line) < 0)
        return -ENOMEM;
    state->line = state->base_line;
    return 0;
}

static int add_event(struct finder *finder, uint32_t number)
{
    const struct process_event *event = &finder->trace->events[number];
    struct thread_state *state = &finder->threads[event->thread];
    struct waited *waited = NULL;
    bool after_end = state->over;
    uint32_t node = HB_NONE;
    int r = get_line(finder, state, event->thread);

    state->seen++;
    if (r < 0)
        return r;
    waited = waited_of_event(&finder->waited, finder->trace, event, &finder->nothing);
    if (!waited)
        return -ENOMEM;
    r = find_causes(finder, event, waited);
    if (after_end)
        add_cause(finder, state->last, HB_INSIDE);
    if (r == 0 && event->kind == SYNC_HANDLER && event->phase == SYNC_BEGIN)
        r = begin_handler(finder, state, event->thread);
    if (r == 0)
        r = add_node(finder, state->line, finder->causes, finder->cause_count, number, &node);
    if (r < 0)
        return r;
    finder->causality->node_of[number] = node;
    state->last = node;
    if (!state->depth && trace_only_waits(event))
        state->woken = node;
    if (state->begin == HB_NONE && !state->depth) /* what a handler does is not before the next one */
        state->begin = node;
    r = leave_mark(finder, event, waited, number, node);
    if (r == 0 && event->kind == SYNC_HANDLER && event->phase == SYNC_END)
        r = end_handler(finder, state, node);
    if (waited_is_used_up(waited, event))
        waited_forget(&finder->waited, waited);
    return r;
}

/* ------------------------------------------------------------------------------------------ the whole */

static void finder_release(struct finder *finder)
{
    struct waited *waited = NULL, *next = NULL;

    HASH_ITER (hh, finder->waited, waited, next)
        waited_forget(&finder->waited, waited);
    for (size_t i = 0; finder->threads && i < finder->trace->thread_count; i++)
        free(finder->threads[i].handled);
    free(finder->threads);
    channels_free(finder->channels);
}

static void free_finder(struct finder **finder)
{
    if (*finder)
        finder_release(*finder);
    free(*finder);
}

int causality_find(const struct cascade_trace *trace, const struct handlers *handlers,
                   struct causality *ret_causality)
{
    CLEANUP(free_finder) struct finder *finder = calloc(1, sizeof(*finder));
    int r;

    *ret_causality = (struct causality){0};
    if (!finder)
        return -ENOMEM;
    finder->trace = trace;
    finder->handlers = handlers;
    finder->causality = ret_causality;
    finder->threads = calloc(trace->thread_count + 1, sizeof(*finder->threads));
    ret_causality->node_of = calloc(trace->count + 1, sizeof(*ret_causality->node_of));
    ret_causality->begun = malloc((handlers->count + 1) * sizeof(*ret_causality->begun));
    if (!finder->threads || !ret_causality->node_of || !ret_causality->begun)
        return -ENOMEM;
    for (size_t i = 0; i <= handlers->count; i++)
        ret_causality->begun[i] = HB_NONE;
    for (size_t i = 0; i < trace->thread_count; i++) {
        struct thread_state *state = &finder->threads[i];

        state->line = state->base_line = state->begin = state->last = state->woken = HB_NONE;
        state->wait_began = TRACE_NONE;
    }
    r = hb_graph_new(&ret_causality->graph);
    if (r == 0)
        r = channels_new(trace, &finder->channels);
    for (uint32_t i = 0; i < trace->count && r == 0; i++)
        r = add_event(finder, i);
    return r;
}

void causality_release(struct causality *causality)
{
    hb_graph_free(causality->graph);
    free(causality->node_of);
    free(causality->event_of);
    free(causality->begun);
    free(causality->handler_of);
    free(causality->thread_of);
    *causality = (struct causality){0};
}
