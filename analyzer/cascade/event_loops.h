/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Handlers of events that nobody has declared: what a thread calls that again and again waits for something
 * to do, and then calls.
 *
 * In a call that loops (the dispatcher), a wait is a poll, a condition or a semaphore: its own, or that of a
 * function that does nothing else but take locks. What the dispatcher calls behind a wait, and what does more
 * there than take locks, is the handler of an event, when the same dispatcher of the thread has come back
 * from the same wait at least EVENT_LOOP_ROUNDS times. A thread with handlers that were declared has no
 * others.
 *
 * Such an execution becomes a SYNC_HANDLER of the trace, with `other` TRACE_RECOGNISED + the function_id.
 */
#ifndef TRACECTL_ANALYZER_CASCADE_EVENT_LOOPS_H
#define TRACECTL_ANALYZER_CASCADE_EVENT_LOOPS_H

#include "analyzer/cascade/frames.h"

enum { EVENT_LOOP_ROUNDS = 3 };

struct event_loop_reader;

/* `functions` is by function_id; it and the trace must outlive the reader. -ENOMEM. */
int event_loop_reader_new(const struct cascade_trace *trace, const struct frame_function *functions,
                          size_t count, struct event_loop_reader **ret_reader);
void event_loop_reader_free(struct event_loop_reader *reader); /* accepts NULL */

/* The next event of a thread's stream of calls; and that it is at its end. One thread after the other.
 * -ENOMEM. */
int event_loop_reader_event(struct event_loop_reader *reader, uint32_t thread, const struct event *event);
int event_loop_reader_end(struct event_loop_reader *reader, uint32_t thread);

/* Puts what was recognised into the trace, whose events are numbered anew. -ENOMEM, -EOVERFLOW. */
int event_loops_mark(struct event_loop_reader *reader, struct cascade_trace *trace);

#endif
