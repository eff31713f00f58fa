/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The writer's insides. Events go into each thread's open segment, in memory only. A flush commits what is
 * new: closed segments as rows, the others' news as a journal row. Nothing is forgotten before its commit
 * succeeded, so a flush that failed is simply made again.
 */
#ifndef TRACESTORE_WRITER_H
#define TRACESTORE_WRITER_H

#include "store/db/store.h"
#include "store/segment/journal.h"
#include "store/segment/segment.h"
#include "store/streams/process_events.h"
#include "store/writer/catalog_queue.h"
#include "store/writer/writer_window.h"

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
    size_t memory;         /* that it is charged for: no less than its open segment takes */
    size_t charged_tables; /* the tables that this is enough for */
    uint64_t active_flush; /* the last flush that had events of it */
    struct window_thread window;
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

    size_t memory_limit, memory; /* of all threads' open segments; no limit: SIZE_MAX */
    size_t memory_peak;
    size_t charged_threads; /* those that are charged for some */
    struct thread_writer
        *hand; /* where writer_charge continues looking for what to close, NULL: at the first */
    uint64_t closed_early, flushes;

    struct writer_window *window; /* NULL: everything is kept */

    struct process_writer *process_writers; /* one for each stream of a process */
    uint64_t sync_channels;                 /* the largest number of one */

    size_t journal_total; /* bytes of this run's rows */
    size_t journal_live;  /* what a rewritten journal would have: the sum of the threads' journal_bytes */
};

/* Moves the thread's open segment, which has events, to the queue. -ENOMEM. */
int writer_close_segment(struct thread_writer *thread);

/* The payload of a closed segment as it is stored: with ids in place of numbers, sealed. */
int writer_seal_payload(struct trace_writer *writer, const struct closed_segment *closed,
                        struct bytes *sealed, struct error *err);

/* Frees what a thread has; nothing may refer to it any more. */
void writer_free_thread(struct thread_writer *thread);

/* Puts a closed segment of the thread at the end of the queue. */
void writer_queue_segment(struct thread_writer *thread, struct closed_segment *closed);

/*
 * A limit on the memory of all open segments (writer_memory.c). A thread that does much that it has not done
 * before takes megabytes, and those of thousands of threads would be gigabytes. When the limit is passed,
 * segments are closed early and their tables freed: the next ones learn anew, so that their events take more
 * bytes, but none is lost.
 *
 * While events come, it is threads that take at least their share that have to give way, a few looked at a
 * time; at a flush, those that were idle longest, while three quarters of the limit are taken.
 */

/* The thread's tables have grown beyond what it is charged for. */
void writer_charge(struct thread_writer *thread);
/* The thread has no segment any more. */
void writer_discharge(struct thread_writer *thread);
/* At the beginning of a flush, whose number is writer->flushes. */
void writer_free_idle(struct trace_writer *writer);

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

/* The events of processes (process_writer.c): writes them inside the flush's transaction, and forgets them
 * once it is committed. */
int process_writers_write(struct trace_writer *writer, struct error *err);
void process_writers_advance(struct trace_writer *writer);
void process_writers_free(struct trace_writer *writer);

/* The writer of a process's stream, made when it is first asked for. `process` is a number. NULL: out of
 * memory. */
struct process_writer *process_writer_get(struct trace_writer *writer, enum process_stream stream,
                                          int64_t process);

struct shared_row;
void shared_rows_release(struct shared_row **rows);

/* `final`: the run ends; its journal and its 'unfinished' loss go. */
struct writer_ending {
    uint64_t ended_ns;
    int exit_status;
};
int writer_flush(struct trace_writer *writer, uint64_t now_ns, const struct writer_ending *ending,
                 struct error *err);

/* Ends a run whose recorder did not, at its last flush; the loss 'unfinished' stays. */
int store_end_cut_run(sqlite3 *db, int64_t run_id, struct error *err);

#endif
