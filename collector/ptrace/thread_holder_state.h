/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the parts of the thread holder share. */
#ifndef TRACECTL_COLLECTOR_PTRACE_THREAD_HOLDER_STATE_H
#define TRACECTL_COLLECTOR_PTRACE_THREAD_HOLDER_STATE_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "collector/ptrace/shared_process.h"
#include "collector/ptrace/thread_holder.h"

struct thread_holder_hold {
    pid_t tid;
    int signal;                                 /* which has stopped the thread */
    uint64_t since, end;                        /* CLOCK_MONOTONIC */
    struct thread_holder_preemption preemption; /* g 0: none */
};

/* The counters of struct thread_holder_counts, which one process writes and others read. */
struct thread_holder_counters {
    _Atomic uint64_t stops, holds, let_go, timed_out, ended, refused, preempted, preempt_failed, foreign,
        signals, held_ns;
};

struct thread_holder {
    struct thread_holder_options options;
    struct thread_holder_counters counts;

    /* Of the process that made the thread holder. */
    struct shared_process process;
    pthread_mutex_t seizing;
    int requests; /* the end for writing; closed to end the thread holder */

    /* Between both. */
    sem_t answered;
    int answer; /* to THREAD_HOLDER_SEIZE, and of the start: 0 or a negative errno */
    atomic_bool gone;
    pid_t pid;

    /* Of the thread holder's process. */
    int inbox;                        /* the other end of `requests` */
    int child_fd;                     /* signalfd: a tracee has something to tell */
    struct thread_holder_hold *asked; /* the thread that `stopped` is asked about; NULL otherwise */
    struct thread_holder_hold holds[THREAD_HOLDER_HOLDS_MAX];
    size_t hold_count;
};

enum thread_holder_request_kind {
    THREAD_HOLDER_SEIZE,
    THREAD_HOLDER_LET_GO,
    THREAD_HOLDER_PREEMPT,
};

struct thread_holder_request {
    enum thread_holder_request_kind kind;
    pid_t tid;
    struct thread_holder_preemption preemption;
};

#endif
