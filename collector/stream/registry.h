/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The processes and threads of a recording that are alive, found by their ids. */
#ifndef TRACECTL_COLLECTOR_STREAM_REGISTRY_H
#define TRACECTL_COLLECTOR_STREAM_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uthash.h>

#include "collector/images/image_table.h"
#include "collector/stream/call_stack.h"
#include "collector/stream/call_watch.h"
#include "collector/stream/inline_history.h"
#include "collector/stream/inline_paths.h"

struct goroutine_streams;
struct sync_stream;
struct sync_thread;
struct known_caller;
struct stream_code;

struct traced_process {
    pid_t pid;
    struct traced_process *parent;    /* NULL: none that is traced and alive */
    const struct traced_image *image; /* its program; NULL: nothing that is traced */
    struct stream_code *code;         /* in ascending order */
    size_t code_count;
    enum trace_returns returns; /* of all its traced code together */
    char *exe, *argv;
    int rank;                             /* -1: none */
    int64_t parent_id;                    /* process_id of a parent that has ended, 0: none in the store */
    uint64_t started_ns;                  /* CLOCK_MONOTONIC, as all times here */
    unsigned next_thread;                 /* T of the next thread */
    uint64_t serial;                      /* of its number, in the labels */
    int64_t process_id;                   /* 0: not in the store yet */
    unsigned number;                      /* P */
    struct goroutine_streams *goroutines; /* NULL: no Go program, or not wanted */
    struct sync_stream *sync;             /* NULL: nothing yet, or not wanted */
    bool from_start;                      /* the recording saw it begin */
    struct known_caller *callers;         /* of inline calls, in inline_calls.c; NULL: none looked up yet */
    uint64_t epoch; /* goes up when something changes that its records and stacks are read with */
    bool uncertain; /* one of the answers of streams_uncertain_processes */
    UT_hash_handle hh;
};

struct traced_thread {
    uint32_t tid;
    unsigned number; /* T */
    struct traced_process *process;
    uint64_t started_ns;
    struct thread_writer *writer; /* NULL: not in the store yet */
    struct call_stack stack;
    struct sync_thread *sync; /* NULL: nothing yet */
    uint64_t last_anchor_ns;  /* 0: none yet */
    uint64_t signal_stack;    /* where a handler was entered on a stack of its own last; 0: nowhere */
    uint64_t signal_stacks;   /* how often that has changed */
    bool has_inline_calls;    /* some of its calls came from inline probes */
    struct inline_paths paths;
    struct inline_history history;
    struct watched_calls watched;
    UT_hash_handle hh;
};

#define REGISTRY_PATHS_MEMORY ((size_t)64 << 20)

struct registry {
    size_t paths_memory_left; /* bytes, for all threads' inline_paths and inline_history; all may take
                                 REGISTRY_PATHS_MEMORY */
    struct traced_process *processes;
    struct traced_thread *threads;
    struct traced_thread *last; /* found last: records come in runs of one thread */
};

void registry_init(struct registry *registry);
void registry_release(struct registry *registry);

struct traced_process *registry_process(struct registry *registry, pid_t pid);
struct traced_thread *registry_thread(struct registry *registry, uint32_t tid);

/* A new process without threads, or a new thread of a process. NULL: no memory. */
struct traced_process *registry_add_process(struct registry *registry, pid_t pid, uint64_t started_ns);
struct traced_thread *registry_add_thread(struct registry *registry, struct traced_process *process,
                                          uint32_t tid, uint64_t started_ns);

void registry_remove_thread(struct registry *registry, struct traced_thread *thread);

/* The thread has another id from now on, which no other thread has. */
void registry_rename_thread(struct registry *registry, struct traced_thread *thread, uint32_t tid);

/* The process_id of the nearest ancestor in the store, 0: none. */
int64_t registry_stored_parent(const struct traced_process *process);

/* The process must have no thread left. Its children's parent_id becomes what it is known by. */
void registry_remove_process(struct registry *registry, struct traced_process *process);

#endif
