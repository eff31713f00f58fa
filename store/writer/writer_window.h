/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A writer that keeps the last minutes only: what a flight recorder's window is made of.
 *
 * Each flush deletes the segments whose events are all older than the window. So that there are such, open
 * segments are closed when they are an eighth of the window old: what is kept is at most so much longer than
 * the window, and two flushes. Of a thread at least the newest segment stays, since that says which calls are
 * open; of one that did nothing for a whole window an empty segment takes its place: a stack, and no event. A
 * thread that has ended goes with its last segment, a process with its last thread, so that neither the store
 * nor the writer grows, however long it continues.
 */
#ifndef TRACESTORE_WRITER_WINDOW_H
#define TRACESTORE_WRITER_WINDOW_H

#include <stdint.h>

#include "store/segment/segment.h"

struct trace_writer;
struct writer_window;

/* What the window knows of a thread. */
struct window_thread {
    uint64_t opened_ns;             /* its open segment has no event from before; 0: not known yet */
    uint64_t ended_ns;              /* 0: it lives */
    int64_t newest;                 /* its last segment with events that is a row */
    int64_t resting_row;            /* the empty segment behind it, 0: none */
    struct closed_segment *resting; /* what this flush writes as such */
    size_t queued;                  /* closed segments that wait for this flush */
    bool is_gone;                   /* nothing of it is left: this flush deletes it */
};

/* NULL: no memory. `bytes` 0: no limit. */
struct writer_window *window_new(uint64_t ns, size_t bytes, uint64_t started_ns);
void window_free(struct writer_window *window); /* accepts NULL */

/* At the beginning of a flush: closes segments that are old enough, and chooses what goes. -ENOMEM. */
int window_prepare(struct trace_writer *writer, uint64_t now_ns);

/* Inside its transaction: before segments are written, and behind them. */
int window_make_way(struct trace_writer *writer, struct error *err);
int window_write(struct trace_writer *writer, uint64_t now_ns, struct error *err);

/* Once that is committed: while the closed segments are still in the queue, and when no thread is dirty. */
void window_advance(struct trace_writer *writer);
void window_forget_threads(struct trace_writer *writer);

#endif
