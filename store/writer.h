/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The writer's insides. Events go into each thread's open segment, in memory only. A flush commits what is
 * new: closed segments as rows, the others' news as a journal row. Nothing is forgotten before its commit
 * succeeded, so a flush that failed is simply made again.
 */
#ifndef TRACESTORE_WRITER_H
#define TRACESTORE_WRITER_H

#include "store/journal.h"
#include "store/segment.h"
#include "store/store.h"

struct thread_writer {
    struct trace_writer *writer;
    struct thread_writer *next;       /* all threads of the writer */
    struct thread_writer *next_dirty; /* those that the next flush has to look at */
    int64_t thread_id;
    struct segment_builder builder;
    struct journal_mark mark;
    struct closed_segment *unbounded; /* the last one closed, until the time behind it is known */
    size_t journal_bytes;             /* of the open segment, if all of it were written in one chunk */
    uint64_t ended_ns;
    bool dirty, end_is_news;
};

struct pending_loss {
    int64_t thread_id; /* 0: none */
    int64_t seq;       /* -1: none */
    uint64_t ns, count;
    char *cause;
};

struct trace_writer {
    struct tracestore *store;
    sqlite3 *db;
    sqlite3_stmt *insert_thread; /* kept, because threads come by the thousands */
    int64_t run_id;
    size_t segment_bytes;
    uint64_t segment_events;

    struct thread_writer *threads, *dirty;
    struct closed_segment *closed, **closed_end; /* a queue */
    size_t closed_bytes;
    struct pending_loss *losses;
    size_t loss_count, loss_capacity;

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

/* Queues a row of `losses` for the next flush. -ENOMEM. */
int writer_queue_loss(struct trace_writer *writer, int64_t thread_id, int64_t seq, uint64_t ns,
                      uint64_t count, const char *cause);

/* `final`: the run ends; its journal and its 'unfinished' loss go. */
struct writer_ending {
    uint64_t ended_ns;
    int exit_status;
};
int writer_flush(struct trace_writer *writer, uint64_t now_ns, const struct writer_ending *ending,
                 struct error *err);

#endif
