/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/cascade/event_loops.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"

/* An open call. */
struct frame {
    uint64_t seq;
    uint32_t function;
    size_t looked;  /* so many of the thread's events have been looked at */
    bool waited;    /* behind a wait */
    uint32_t wait;  /* function_id of what waits, 0: the call itself */
    uint32_t round; /* of the reader: how many waits there were */
};

/* A call behind a wait. */
struct execution {
    uint32_t thread, dispatcher, wait, round;
    uint32_t function;
    uint64_t seq, end; /* UINT64_MAX: nobody saw it end */
};

struct event_loop_reader {
    const struct cascade_trace *trace;
    const struct frame_function *functions;
    size_t function_count;
    struct frame *stack;
    size_t depth, stack_capacity;
    struct execution *executions;
    size_t count, capacity;
    uint32_t rounds;
    bool declared, begun; /* of the present thread: it has handlers that were declared; an event was given */
};

int event_loop_reader_new(const struct cascade_trace *trace, const struct frame_function *functions,
                          size_t count, struct event_loop_reader **ret_reader)
{
    struct event_loop_reader *reader = calloc(1, sizeof(*reader));

    if (!reader)
        return -ENOMEM;
    reader->trace = trace;
    reader->functions = functions;
    reader->function_count = count;
    *ret_reader = reader;
    return 0;
}

void event_loop_reader_free(struct event_loop_reader *reader)
{
    if (!reader)
        return;
    free(reader->stack);
    free(reader->executions);
    free(reader);
}

/* ------------------------------------------------------------------------------------------ looking */

/* What some of a thread's events do. */
struct doing {
    bool waits; /* for whatever comes */
    bool works; /* does more than wait and take locks */
};

static bool is_wait(const struct process_event *event)
{
    switch ((enum sync_event_kind)event->kind) {
    case SYNC_POLL:
        return event->result > 0;
    case SYNC_COND_WAIT:
    case SYNC_COND_TIMEDWAIT:
        return event->phase == SYNC_END && event->result == 0;
    case SYNC_SEM_WAIT:
    case SYNC_SEM_TIMEDWAIT:
        return true;
    default:
        return false;
    }
}

static bool is_lock(const struct process_event *event)
{
    return trace_lock_action(event) != LOCK_NOTHING;
}

static struct doing look(const struct event_loop_reader *reader, uint32_t thread, size_t from, size_t to)
{
    const struct trace_thread *of = &reader->trace->threads[thread];
    struct doing doing = {false, false};

    for (size_t i = from; i < to; i++) {
        const struct process_event *event = &reader->trace->events[of->events[i]];

        if (is_wait(event))
            doing.waits = true;
        else if (event->kind != SYNC_POLL && !is_lock(event))
            doing.works = true;
    }
    return doing;
}

static void note_wait(struct event_loop_reader *reader, struct frame *frame, uint32_t function)
{
    frame->waited = true;
    frame->wait = function;
    frame->round = ++reader->rounds;
}

static bool is_stub(const struct event_loop_reader *reader, uint32_t function)
{
    return function < reader->function_count && reader->functions[function].stub;
}

/* What the innermost call did itself up to the event `seq` of the stream. */
static void look_at_own(struct event_loop_reader *reader, uint32_t thread, uint64_t seq)
{
    struct frame *frame = &reader->stack[reader->depth - 1];
    size_t behind = cascade_trace_before(reader->trace, thread, seq);

    if (behind <= frame->looked)
        return;
    if (look(reader, thread, frame->looked, behind).waits)
        note_wait(reader, frame, 0);
    frame->looked = behind;
}

/* ------------------------------------------------------------------------------------------ calls */

static int add_execution(struct event_loop_reader *reader, uint32_t thread, const struct frame *frame,
                         const struct frame *callee, uint64_t end)
{
    if (array_reserve(&reader->executions, &reader->capacity, reader->count + 1) < 0)
        return -ENOMEM;
    reader->executions[reader->count++] = (struct execution){
        .thread = thread,
        .dispatcher = frame->function,
        .wait = frame->wait,
        .round = frame->round,
        .function = callee->function,
        .seq = callee->seq,
        .end = end,
    };
    return 0;
}

/* The innermost call ends with the event `end`; UINT64_MAX: nobody saw it end. */
static int close_frame(struct event_loop_reader *reader, uint32_t thread, uint64_t end)
{
    const struct frame *callee = &reader->stack[--reader->depth];
    struct frame *frame = reader->depth ? &reader->stack[reader->depth - 1] : NULL;
    size_t from, behind;
    struct doing doing;

    if (!frame)
        return 0;
    from = cascade_trace_before(reader->trace, thread, callee->seq);
    behind = cascade_trace_before(reader->trace, thread, end);
    doing = look(reader, thread, from, behind);
    frame->looked = behind > frame->looked ? behind : frame->looked;
    if (doing.waits && !doing.works)
        note_wait(reader, frame, callee->function);
    else if (doing.works && frame->waited && !is_stub(reader, callee->function))
        return add_execution(reader, thread, frame, callee, end);
    return 0;
}

static bool has_declared(const struct cascade_trace *trace, uint32_t thread)
{
    const struct trace_thread *of = &trace->threads[thread];

    for (size_t i = 0; i < of->count; i++)
        if (trace->events[of->events[i]].kind == SYNC_HANDLER)
            return true;
    return false;
}

int event_loop_reader_event(struct event_loop_reader *reader, uint32_t thread, const struct event *event)
{
    int r = 0;

    if (!reader->begun) {
        reader->begun = true;
        reader->declared = has_declared(reader->trace, thread);
    }
    if (reader->declared || (event->kind != EVENT_CALL && event->kind != EVENT_RETURN))
        return 0;
    if (reader->depth)
        look_at_own(reader, thread, event->seq);
    while (r == 0 && reader->depth > event->depth)
        r = close_frame(reader, thread, event->seq);
    if (r < 0 || event->kind != EVENT_CALL)
        return r;
    if (array_reserve(&reader->stack, &reader->stack_capacity, reader->depth + 1) < 0)
        return -ENOMEM;
    reader->stack[reader->depth++] =
        (struct frame){.seq = event->seq,
                       .function = event->function,
                       .looked = cascade_trace_before(reader->trace, thread, event->seq)};
    return 0;
}

int event_loop_reader_end(struct event_loop_reader *reader, uint32_t thread)
{
    int r = 0;

    while (r == 0 && reader->depth)
        r = close_frame(reader, thread, UINT64_MAX);
    reader->begun = false;
    return r;
}

/* ------------------------------------------------------------------------------------------ choosing */

static int compare_loops(const void *a, const void *b)
{
    const struct execution *first = a, *second = b;

    if (first->thread != second->thread)
        return first->thread < second->thread ? -1 : 1;
    if (first->dispatcher != second->dispatcher)
        return first->dispatcher < second->dispatcher ? -1 : 1;
    if (first->wait != second->wait)
        return first->wait < second->wait ? -1 : 1;
    return first->round < second->round ? -1 : first->round > second->round;
}

static int compare_places(const void *a, const void *b)
{
    const struct execution *first = a, *second = b;

    if (first->thread != second->thread)
        return first->thread < second->thread ? -1 : 1;
    return first->seq < second->seq ? -1 : first->seq > second->seq;
}

/* Keeps those of loops that came round often enough. */
static void keep_loops(struct event_loop_reader *reader)
{
    struct execution *all = reader->executions;
    size_t kept = 0;

    qsort(all, reader->count, sizeof(*all), compare_loops);
    for (size_t i = 0, end; i < reader->count; i = end) {
        unsigned rounds = 1;

        for (end = i + 1; end < reader->count && all[end].thread == all[i].thread &&
                          all[end].dispatcher == all[i].dispatcher && all[end].wait == all[i].wait;
             end++)
            rounds += all[end].round != all[end - 1].round;
        for (size_t j = i; j < end && rounds >= EVENT_LOOP_ROUNDS; j++)
            all[kept++] = all[j];
    }
    reader->count = kept;
}

/* A loop inside a handler is a part of it. */
static void keep_outermost(struct event_loop_reader *reader)
{
    struct execution *all = reader->executions;
    size_t kept = 0;

    qsort(all, reader->count, sizeof(*all), compare_places);
    for (size_t i = 0; i < reader->count; i++)
        if (!kept || all[kept - 1].thread != all[i].thread || all[kept - 1].end < all[i].seq)
            all[kept++] = all[i];
    reader->count = kept;
}

/* ------------------------------------------------------------------------------------------ marking */

/* The beginning and the end of an execution as events of the trace; returns how many those are. */
static size_t make_marks(const struct cascade_trace *trace, const struct execution *execution,
                         struct trace_insertion *marks)
{
    const struct trace_thread *of = &trace->threads[execution->thread];
    size_t first = cascade_trace_before(trace, execution->thread, execution->seq),
           behind = cascade_trace_before(trace, execution->thread, execution->end);
    struct process_event mark = {.kind = SYNC_HANDLER, .thread = execution->thread};

    if (first == behind)
        return 0;
    mark.other = TRACE_RECOGNISED + execution->function;
    mark.phase = SYNC_BEGIN;
    mark.ns = trace->events[of->events[first]].ns;
    mark.position = execution->seq;
    marks[0] = (struct trace_insertion){of->events[first], mark};
    if (execution->end == UINT64_MAX)
        return 1;
    mark.phase = SYNC_END;
    mark.ns = trace->events[of->events[behind - 1]].ns;
    mark.position = execution->end + 1;
    marks[1] = (struct trace_insertion){of->events[behind - 1] + 1, mark};
    return 2;
}

int event_loops_mark(struct event_loop_reader *reader, struct cascade_trace *trace)
{
    AUTO_FREE struct trace_insertion *marks = NULL;
    size_t count = 0;

    if (!reader->count)
        return 0;
    keep_loops(reader);
    keep_outermost(reader);
    marks = calloc(2 * reader->count + 1, sizeof(*marks));
    if (!marks)
        return -ENOMEM;
    for (size_t i = 0; i < reader->count; i++)
        count += make_marks(trace, &reader->executions[i], &marks[count]);
    return cascade_trace_insert(trace, marks, count);
}
