/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to window_*.c: a window on its way into a store. Numbers of the window's catalog become numbers of
 * the writer's. */
#ifndef TRACESTORE_WINDOW_COPY_H
#define TRACESTORE_WINDOW_COPY_H

#include "store/bytes/id_map.h"
#include "store/writer/window.h"
#include "store/writer/writer.h"

/* A thread of the window, and where its events are in the run. */
struct moved_thread {
    int64_t thread_id; /* in the window */
    struct thread_writer *thread;
    uint64_t first_seq;           /* of the first event that is kept */
    uint64_t head;                /* events that stand for those before it */
    const struct open_call *open; /* the calls among these, while the thread is copied */
    uint64_t *open_seqs;          /* and their numbers in the run */
    size_t depth;
};

struct window_copy {
    sqlite3 *db; /* the window's */
    int64_t run_id;
    struct trace_writer *writer;
    uint64_t from_ns, to_ns;
    uint64_t segments;
    struct id_map images, functions, sites, processes; /* the writer's numbers, by id in the window */
    struct numbering maps[NUMBER_KINDS];               /* the same of functions and sites, for sections */
    struct moved_thread *threads;                      /* by thread_id */
    size_t thread_count, thread_capacity;
    struct error *err;
};

/* Functions and call sites (0 and TRACESTORE_LOST_FUNCTION are none) get numbers of the writer, once. */
int window_take_function(struct window_copy *commit, uint32_t id);
int window_take_site(struct window_copy *commit, uint32_t id);

/* Copies a thread with its events: a row of WINDOW_THREADS_SQL. */
int window_copy_thread(struct window_copy *commit, sqlite3_stmt *row);
#define WINDOW_THREADS_SQL \
    "SELECT thread_id, process_id, tid, label, name, started_ns, ended_ns, returns FROM threads" \
    " WHERE run_id = ?1 ORDER BY thread_id"

static inline const char *window_text(sqlite3_stmt *row, int column)
{
    return (const char *)sqlite3_column_text(row, column);
}

#endif
