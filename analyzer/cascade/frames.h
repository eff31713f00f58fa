/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the streams of calls say to the sync events of a run: which function each of them happened in, when
 * the sink ran, and the loops that take time.
 *
 * A loop is looked for in each call of a function by itself: nested loop recognition (nlr.h) goes over what
 * that call called directly, so that what the callees do in turn makes no loop longer, and no body too long.
 * A loop takes time when there is input, output, sleeping or waiting in it. Of these functions the one that
 * does most of it is the loop's `step`; a loop is known by its function and its step, and its iterations are
 * the calls of the step, also where something else makes the iterations differ. A step that is called too
 * seldom to be a loop is kept for its count, so that runs can be compared.
 */
#ifndef TRACECTL_ANALYZER_CASCADE_FRAMES_H
#define TRACECTL_ANALYZER_CASCADE_FRAMES_H

#include "analyzer/cascade/trace.h"
#include "analyzer/loops/nlr.h"

struct frame_function {
    bool known; /* it is one of the run's */
    bool stub;  /* a PLT stub: stands for a library's function */
    bool sink;
};

struct timed_loop {
    uint32_t thread;
    uint32_t frame;          /* number of the call that loops */
    uint32_t function, step; /* function_id of the function that loops, and of what it calls */
    uint64_t iterations;
    uint32_t first, last; /* events: the first and the last one in it that take time */
    bool recognised;      /* as a loop */
    bool only_waits;      /* sleeps, or waits for somebody, and does nothing else that takes time */
    bool ends_on_read;    /* what was read last was less than what was read before, or nothing, or failed */
    bool finished;        /* false: the recording, or the thread, ended in it */
};

struct sink_call {
    uint32_t thread;
    uint32_t first, last; /* events; there is at least one */
    bool finished;
};

struct frames {
    uint32_t *function_of; /* by event: function_id of the innermost call around it that is no stub, 0 */
    struct timed_loop *loops;
    size_t loop_count, loop_capacity;
    struct sink_call *sinks;
    size_t sink_count, sink_capacity;
    uint64_t sink_calls; /* with those that have no event */
    bool incomplete;     /* calls are missing */
};

struct frame_reader;

/* `functions` is by function_id; it and the trace must outlive the reader. -ENOMEM. Fills in `ret_frames`,
 * which must be released in any case. */
int frame_reader_new(const struct cascade_trace *trace, const struct frame_function *functions, size_t count,
                     struct frames *ret_frames, struct frame_reader **ret_reader);
void frame_reader_free(struct frame_reader *reader);

/* The next event of a thread's stream of calls; and that it is at its end. One thread after the other.
 * -ENOMEM. */
int frame_reader_event(struct frame_reader *reader, uint32_t thread, const struct event *event);
int frame_reader_end(struct frame_reader *reader, uint32_t thread);

void frames_release(struct frames *frames);

#endif
