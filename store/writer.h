/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The writer's insides. Events go into each thread's open segment, in memory only. A flush commits what is
 * new: closed segments as rows, the others' news as a journal row. Nothing is forgotten before its commit
 * succeeded, so a flush that failed is simply made again.
 */
#ifndef TRACESTORE_WRITER_H
#define TRACESTORE_WRITER_H

#include "store/catalog_queue.h"
#include "store/journal.h"
#include "store/segment.h"
#include "store/store.h"

struct thread_writer {
    struct trace_writer *writer;
    struct thread_writer *next;       /* all threads of the writer */
    struct thread_writer *next_dirty; /* those that the next flush has to look at */
    int64_t number;                   /* of the thread, until its row has an id */
    struct segment_builder builder;
    struct journal_mark mark;
    struct closed_segment *unbounded; /* the last one closed, until the time behind it is known */
    size_t journal_bytes;             /* of the open segment, if all of it were written in one chunk */
    bool dirty;
};

/* A part of the row of `losses`. */
struct lost_events {
    uint64_t count;         /* 0: unknown */
    int64_t calls, returns; /* -1: unknown */
};

struct trace_writer {
    struct tracestore *store;
    sqlite3 *db;
    sqlite3_stmt *find_function, *find_site; /* kept, because they come by the thousands */
    int64_t run_id;
    size_t segment_bytes;
    uint64_t segment_events;

    struct thread_writer *threads, *dirty;
    struct closed_segment *closed, **closed_end; /* a queue */
    size_t closed_bytes;
    struct catalog_queue catalog; /* what the next flush writes before them */
    struct numbering numberings[NUMBER_KINDS];
    struct shared_row *shared; /* images, functions and sites that this writer knows, by key */

    size_t journal_total; /* bytes of this run's rows */
    size_t journal_live;  /* what a rewritten journal would have: the sum of the threads' journal_bytes */
};

/* Moves the thread's open segment, which has events, to the queue. -ENOMEM. */
int writer_close_segment(struct thread_writer *thread);

static inline void writer_mark_dirty(struct thread_writer *thread)
{
    if (thread->dirty)
        return;
    thread->dirty = true;
    thread->next_dirty = thread->writer->dirty;
    thread->writer->dirty = thread;
}

/* Queue a row for the next flush. `thread` is a number, 0: none; `seq` -1: none. -ENOMEM. */
int writer_queue_loss(struct trace_writer *writer, int64_t thread, int64_t seq, uint64_t ns,
                      const struct lost_events *lost, const char *cause);
int writer_queue_thread_end(struct thread_writer *thread, uint64_t ns);

struct shared_row;
void shared_rows_release(struct shared_row **rows);

/* `final`: the run ends; its journal and its 'unfinished' loss go. */
struct writer_ending {
    uint64_t ended_ns;
    int exit_status;
};
int writer_flush(struct trace_writer *writer, uint64_t now_ns, const struct writer_ending *ending,
                 struct error *err);

#endif
