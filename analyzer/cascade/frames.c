/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/cascade/frames.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"

enum { MOST_STEPS = NLR_DEFAULT_BODY * 4 /* different functions in the body of a loop */ };

/* A direct call of an open call; `end` is the seq of its return. */
struct callee {
    uint64_t seq, end;
    uint32_t function;
};

struct frame {
    uint64_t seq;
    uint32_t function;
    struct callee *callees;
    size_t count, capacity;
};

struct frame_reader {
    const struct cascade_trace *trace;
    const struct frame_function *functions;
    size_t function_count;
    struct frames *frames;
    struct loop_table table;
    struct nlr_builder *builder;
    struct frame *stack; /* frames beyond `depth` keep their memory */
    size_t depth, stack_count, stack_capacity;
    size_t next_event;     /* of the thread, whose function is not yet known */
    uint32_t frame_number; /* of the call whose loops are looked for */
};

int frame_reader_new(const struct cascade_trace *trace, const struct frame_function *functions, size_t count,
                     struct frames *ret_frames, struct frame_reader **ret_reader)
{
    static const struct nlr_options options = {NLR_DEFAULT_BODY, 2};
    struct frame_reader *reader = calloc(1, sizeof(*reader));

    *ret_frames = (struct frames){.function_of = calloc(trace->count + 1, sizeof(uint32_t))};
    if (!reader || !ret_frames->function_of || nlr_builder_new(&reader->table, &options, &reader->builder)) {
        free(reader);
        return -ENOMEM;
    }
    reader->trace = trace;
    reader->functions = functions;
    reader->function_count = count;
    reader->frames = ret_frames;
    *ret_reader = reader;
    return 0;
}

void frame_reader_free(struct frame_reader *reader)
{
    if (!reader)
        return;
    for (size_t i = 0; i < reader->stack_count; i++)
        free(reader->stack[i].callees);
    free(reader->stack);
    nlr_builder_free(reader->builder);
    loop_table_release(&reader->table);
    free(reader);
}

void frames_release(struct frames *frames)
{
    free(frames->function_of);
    free(frames->loops);
    free(frames->sinks);
    *frames = (struct frames){0};
}

static const struct frame_function *function_of(const struct frame_reader *reader, uint32_t function)
{
    static const struct frame_function unknown;

    return function < reader->function_count ? &reader->functions[function] : &unknown;
}

/* ------------------------------------------------------------------------------------------ time */

static bool takes_time(const struct frame_reader *reader, uint32_t thread, uint64_t seq, uint64_t end)
{
    const struct cascade_trace *trace = reader->trace;
    const struct trace_thread *of = &trace->threads[thread];

    for (size_t i = cascade_trace_before(trace, thread, seq); i < of->count; i++) {
        const struct process_event *event = &trace->events[of->events[i]];

        if (event->position > end)
            return false;
        if (trace_takes_time(event))
            return true;
    }
    return false;
}

/* What takes time in a part of a stream. */
struct doing {
    uint32_t first, last; /* events, TRACE_NONE */
    uint64_t count, reads;
    bool only_waits, ends_on_read;
};

static struct doing look(const struct frame_reader *reader, uint32_t thread, uint64_t seq, uint64_t end)
{
    const struct cascade_trace *trace = reader->trace;
    const struct trace_thread *of = &trace->threads[thread];
    struct doing doing = {.first = TRACE_NONE, .last = TRACE_NONE, .only_waits = true};
    int64_t most = 0;

    for (size_t i = cascade_trace_before(trace, thread, seq); i < of->count; i++) {
        const struct process_event *event = &trace->events[of->events[i]];

        if (event->position > end)
            break;
        if (!trace_takes_time(event))
            continue;
        if (doing.first == TRACE_NONE)
            doing.first = of->events[i];
        doing.last = of->events[i];
        doing.count++;
        doing.only_waits = doing.only_waits && trace_only_waits(event);
        if (!trace_reads(event) || event->phase != SYNC_END)
            continue;
        doing.reads++;
        doing.ends_on_read = event->result <= 0 || event->result < most;
        most = event->result > most ? event->result : most;
    }
    return doing;
}

/* ------------------------------------------------------------------------------------------ loops */

/* A function that is called in a loop, and what it did there. */
struct step {
    uint32_t function;
    uint64_t calls, count, reads;
};

struct steps {
    struct step steps[MOST_STEPS];
    size_t count;
};

static struct step *find_step(struct steps *steps, uint32_t function)
{
    for (size_t i = 0; i < steps->count; i++)
        if (steps->steps[i].function == function)
            return &steps->steps[i];
    return NULL;
}

static void add_step(struct steps *steps, uint32_t function, const struct doing *doing)
{
    struct step *step = find_step(steps, function);

    if (!step && steps->count == MOST_STEPS)
        return;
    if (!step) {
        step = &steps->steps[steps->count++];
        *step = (struct step){.function = function};
    }
    step->calls++;
    step->count += doing->count;
    step->reads += doing->reads;
}

/* The one that does most; of equal ones one that reads, because what it reads may decide when the loop ends.
 */
static const struct step *main_step(const struct steps *steps)
{
    const struct step *best = NULL;

    for (size_t i = 0; i < steps->count; i++) {
        const struct step *step = &steps->steps[i];

        if (!step->count)
            continue;
        if (!best || step->count > best->count ||
            (step->count == best->count &&
             (step->reads > best->reads || (step->reads == best->reads && step->function < best->function))))
            best = step;
    }
    return best;
}

/* What is no loop is kept for its count alone: one for a step. */
static int add_loop(struct frames *frames, const struct timed_loop *loop)
{
    for (size_t i = frames->loop_count; i-- > 0 && frames->loops[i].frame == loop->frame;)
        if (!loop->recognised && !frames->loops[i].recognised && frames->loops[i].step == loop->step) {
            frames->loops[i].iterations += loop->iterations;
            return 0;
        }
    if (array_reserve(&frames->loops, &frames->loop_capacity, frames->loop_count + 1) < 0)
        return -ENOMEM;
    frames->loops[frames->loop_count++] = *loop;
    return 0;
}

/* Whether the call is the handler of an event, whose beginning stands just before it. */
static bool is_handler(const struct frame_reader *reader, uint32_t thread, uint64_t seq)
{
    const struct trace_thread *of = &reader->trace->threads[thread];
    size_t behind = cascade_trace_before(reader->trace, thread, seq);
    const struct process_event *before = behind ? &reader->trace->events[of->events[behind - 1]] : NULL;

    return before && before->kind == SYNC_HANDLER && before->phase == SYNC_BEGIN && before->position == seq;
}

/* Callees one behind the other, from `from` to `to` - 1. */
struct piece {
    size_t from, to;
    bool recognised; /* as a loop */
};

/* Adds what takes time in the piece: the loop by its main step, the other steps for their counts. */
static int note_piece(struct frame_reader *reader, uint32_t thread, const struct frame *frame,
                      const struct piece *piece)
{
    struct steps steps = {.count = 0};
    bool dispatches = false; /* each iteration handles an event of its own: that is no loop of any of them */
    const struct step *step;
    struct timed_loop loop;
    struct doing doing;
    int r = 0;

    for (size_t i = piece->from; i < piece->to; i++) {
        dispatches = dispatches || is_handler(reader, thread, frame->callees[i].seq);
        doing = look(reader, thread, frame->callees[i].seq, frame->callees[i].end);
        add_step(&steps, frame->callees[i].function, &doing);
    }
    step = main_step(&steps);
    if (!step)
        return 0;
    doing = look(reader, thread, frame->callees[piece->from].seq, frame->callees[piece->to - 1].end);
    loop = (struct timed_loop){
        .thread = thread,
        .frame = reader->frame_number,
        .function = frame->function,
        .first = doing.first,
        .last = doing.last,
        .only_waits = doing.only_waits,
        .ends_on_read = doing.ends_on_read,
        .finished = frame->callees[piece->to - 1].end != UINT64_MAX,
    };
    for (size_t i = 0; i < steps.count && r == 0; i++) {
        if (!steps.steps[i].count)
            continue;
        loop.step = steps.steps[i].function;
        loop.iterations = steps.steps[i].calls;
        loop.recognised = piece->recognised && !dispatches && &steps.steps[i] == step;
        r = add_loop(reader->frames, &loop);
    }
    return r;
}

static bool is_callee(const struct frame *frame, const struct piece *piece, uint32_t function)
{
    for (size_t i = piece->from; i < piece->to; i++)
        if (frame->callees[i].function == function)
            return true;
    return false;
}

/* Makes a loop longer at both ends: an iteration that was cut short, or begun in the middle, belongs to it.
 */
static void widen(const struct frame *frame, struct piece *piece, size_t least)
{
    while (piece->from > least && is_callee(frame, piece, frame->callees[piece->from - 1].function))
        piece->from--;
    while (piece->to < frame->count && is_callee(frame, piece, frame->callees[piece->to].function))
        piece->to++;
}

/* The next loop is at `piece`: notes what was before it, but for a loop that it continues from. */
static int advance(struct frame_reader *reader, uint32_t thread, const struct frame *frame,
                   struct piece *before, const struct piece *piece)
{
    int r = 0;

    if (before->to > before->from && before->to == piece->from && piece->recognised) {
        before->to = piece->to;
        return 0;
    }
    if (before->to > before->from)
        r = note_piece(reader, thread, frame, before);
    for (size_t i = before->to; i < piece->from && r == 0; i++)
        r = note_piece(reader, thread, frame, &(struct piece){i, i + 1, false});
    *before = *piece;
    return r;
}

/* Finds the loops among the callees of a call that is over, or open at the end. Loops without anything
 * between them are one, whose iterations were not alike. */
static int find_loops(struct frame_reader *reader, uint32_t thread, const struct frame *frame)
{
    struct nlr_sequence sequence = {0};
    struct piece before = {0};
    size_t at = 0;
    int r = 0;

    reader->frame_number++;
    for (size_t i = 0; i < frame->count && r == 0; i++)
        r = nlr_builder_push(reader->builder, nlr_symbol(frame->callees[i].function));
    if (r == 0)
        r = nlr_builder_take(reader->builder, &sequence);
    for (size_t i = 0; i < sequence.count && r == 0; i++) {
        size_t length = (size_t)nlr_events(&reader->table, &sequence.elements[i], 1);
        struct piece piece = {at, at + length, true};

        at += length;
        if (sequence.elements[i].kind != NLR_LOOP || piece.to <= before.to)
            continue;
        if (piece.from < before.to)
            piece.from = before.to;
        widen(frame, &piece, before.to);
        r = advance(reader, thread, frame, &before, &piece);
    }
    if (r == 0)
        r = advance(reader, thread, frame, &before, &(struct piece){frame->count, frame->count, false});
    free(sequence.elements);
    return r;
}

/* ------------------------------------------------------------------------------------------ calls */

/* The events that happened before the event `position` of the stream were in the innermost call. */
static void note_function(struct frame_reader *reader, uint32_t thread, uint64_t position)
{
    const struct trace_thread *of = &reader->trace->threads[thread];
    uint32_t function = 0;

    for (size_t i = reader->depth; i-- > 0 && !function;)
        if (!function_of(reader, reader->stack[i].function)->stub)
            function = reader->stack[i].function;
    while (reader->next_event < of->count &&
           reader->trace->events[of->events[reader->next_event]].position <= position)
        reader->frames->function_of[of->events[reader->next_event++]] = function;
}

static int note_sink(struct frame_reader *reader, uint32_t thread, const struct frame *frame, uint64_t end)
{
    const struct trace_thread *of = &reader->trace->threads[thread];
    size_t first = cascade_trace_before(reader->trace, thread, frame->seq),
           last = cascade_trace_before(reader->trace, thread, end);
    struct frames *frames = reader->frames;

    frames->sink_calls++;
    if (is_handler(reader, thread, frame->seq))
        first--; /* it waits for its thread, too */
    if (first == last)
        return 0;
    if (array_reserve(&frames->sinks, &frames->sink_capacity, frames->sink_count + 1) < 0)
        return -ENOMEM;
    frames->sinks[frames->sink_count++] =
        (struct sink_call){thread, of->events[first], of->events[last - 1], end != UINT64_MAX};
    return 0;
}

/* The innermost call ends with the event `end`; UINT64_MAX: nobody saw it end. */
static int close_frame(struct frame_reader *reader, uint32_t thread, uint64_t end)
{
    const struct frame *frame = &reader->stack[reader->depth - 1];
    int r = 0;

    if (function_of(reader, frame->function)->sink)
        r = note_sink(reader, thread, frame, end);
    if (r == 0 && frame->count && takes_time(reader, thread, frame->seq, end))
        r = find_loops(reader, thread, frame);
    reader->depth--;
    if (reader->depth) {
        struct frame *around = &reader->stack[reader->depth - 1];

        around->callees[around->count - 1].end = end;
    }
    return r;
}

static int open_frame(struct frame_reader *reader, const struct event *event)
{
    struct frame *frame;

    if (reader->depth) {
        frame = &reader->stack[reader->depth - 1];
        if (array_reserve(&frame->callees, &frame->capacity, frame->count + 1) < 0)
            return -ENOMEM;
        frame->callees[frame->count++] = (struct callee){event->seq, UINT64_MAX, event->function};
    }
    if (array_reserve(&reader->stack, &reader->stack_capacity, reader->depth + 1) < 0)
        return -ENOMEM;
    while (reader->stack_count <= reader->depth)
        reader->stack[reader->stack_count++] = (struct frame){0};
    frame = &reader->stack[reader->depth++];
    frame->seq = event->seq;
    frame->function = event->function;
    frame->count = 0;
    return 0;
}

int frame_reader_event(struct frame_reader *reader, uint32_t thread, const struct event *event)
{
    int r = 0;

    note_function(reader, thread, event->seq);
    if (event->kind == EVENT_LOST)
        reader->frames->incomplete = true;
    if (event->kind == EVENT_CALL) {
        while (r == 0 && reader->depth > event->depth)
            r = close_frame(reader, thread, event->seq);
        return r < 0 ? r : open_frame(reader, event);
    }
    while (r == 0 && event->kind == EVENT_RETURN && reader->depth > event->depth)
        r = close_frame(reader, thread, event->seq);
    return r;
}

int frame_reader_end(struct frame_reader *reader, uint32_t thread)
{
    int r = 0;

    note_function(reader, thread, UINT64_MAX);
    while (r == 0 && reader->depth)
        r = close_frame(reader, thread, UINT64_MAX);
    reader->next_event = 0;
    return r;
}
