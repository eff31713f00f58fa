/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the parts of the tracer share. */
#ifndef TRACECTL_COLLECTOR_TRACER_TRACER_STATE_H
#define TRACECTL_COLLECTOR_TRACER_TRACER_STATE_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/user.h>
#include <uthash.h>

#include "collector/ptrace/remote.h"
#include "collector/ptrace/shared_process.h"
#include "collector/tracer/record_queue.h"
#include "collector/tracer/tracer.h"

struct tracee;

/* A child by vfork that works on the slots of its parent's thread. */
struct lent_slots {
    pid_t parent;   /* the thread, which waits; 0: none */
    uint64_t block; /* its thread control block */
};

struct traced_process {
    pid_t pid;
    struct process_state state;
    bool left;     /* it is not followed, and stands still only until its slots are marked */
    bool stopping; /* for work on it: its threads stop where they are */
    size_t threads;
    struct lent_slots lent;
    struct user_regs_struct *regains; /* it executes its program again, untraced, with these: file_rights.h */
    UT_hash_handle hh;
};

struct traced_thread {
    pid_t tid;
    struct traced_process *process;
    bool parked;       /* it stands still, and its stop has been taken */
    bool grouped;      /* in a stop of its process */
    bool held;         /* until it is released */
    uint64_t since_ns; /* held: since then, CLOCK_MONOTONIC */
    UT_hash_handle hh;
};

/* A thread that has stopped before its maker has told of it. */
struct early_stop {
    pid_t tid;
    struct early_stop *next;
};

struct tracer {
    struct life_cycle_source source;
    struct remote_tracer visits;
    struct record_queue queue;
    bool follow_children;
    _Atomic unsigned phase; /* enum recording_phase */

    /* Of the process that made it. */
    struct shared_process process;
    pthread_mutex_t asking;
    int requests; /* the end for writing; closed to end the tracer */

    /* Between both. */
    pthread_mutex_t table; /* for what follows; only the tracer changes threads */
    struct traced_process *processes;
    struct traced_thread *threads;
    sem_t answered;
    int answer;
    atomic_bool gone;
    pid_t pid;

    /* Of the tracer's process. */
    int inbox, child_fd; /* the other end of `requests`; signalfd: a tracee has something to tell */
    struct early_stop *early;
};

static inline struct tracer *tracer_of(const struct life_cycle_source *source)
{
    return (struct tracer *)((const char *)source - offsetof(struct tracer, source));
}

/* Has the tracer's process call a function, and returns what that returns; -ESRCH: it has died. */
int tracer_ask(struct tracer *tracer, int (*function)(struct tracer *tracer, void *argument), void *argument);

extern const struct life_cycle_operations tracer_operations;

/* ---- tables, in the tracer's process (tracer_table.c) */

struct traced_process *tracer_find_process(const struct tracer *tracer, pid_t pid);
struct traced_thread *tracer_find_thread(const struct tracer *tracer, pid_t tid);

/* Makes it if there is none. NULL: no memory, which is counted as a loss. */
struct traced_process *tracer_add_process(struct tracer *tracer, pid_t pid);
struct traced_thread *tracer_add_thread(struct tracer *tracer, struct traced_process *process, pid_t tid);

/* The process goes with its last thread; or alone if it never had one. */
void tracer_remove_thread(struct tracer *tracer, struct traced_thread *thread);
void tracer_forget_process(struct tracer *tracer, struct traced_process *process);
void tracer_free_table(struct tracer *tracer);

/* ---- what tracees tell (tracer_stops.c) */

/* Traces all threads of a process, which is in the table. 0, -ESRCH, -EPERM, -ENOMEM. */
int tracer_seize(struct tracer *tracer, struct traced_process *process);

/* Deals with one thing that tracees have to tell. Returns false when there is nothing. */
bool tracer_handle_one(struct tracer *tracer);

/* Lets a thread continue that stands still, unless it is to stay: held, or its process is stopped. */
void tracer_go_on(struct traced_thread *thread);

/* Lets go what is held of a process; returns how many threads that were. */
size_t tracer_release(struct tracer *tracer, struct traced_process *process);

/* The same of all that have been held for ten seconds: the collector is stuck. */
void tracer_release_overdue(struct tracer *tracer, uint64_t now);

/* ---- births (tracer_births.c) */

/* A thread stands still: it has made another one. */
void tracer_on_birth(struct tracer *tracer, struct traced_thread *maker, int event);

/* The slots that a child by vfork has worked on are its parent's again. */
void tracer_end_lending(struct tracer *tracer, struct traced_process *child);
void tracer_on_vfork_done(struct tracer *tracer, struct traced_thread *parent);

/* ---- work on a process that stands still (tracer_visits.c) */

int tracer_with_stopped(struct remote_tracer *visits, pid_t pid,
                        int (*work)(void *context, struct tracee *threads, size_t count), void *context);

#endif
