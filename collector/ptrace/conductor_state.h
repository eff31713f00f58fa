/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the parts of the conductor share. */
#ifndef TRACECTL_COLLECTOR_PTRACE_CONDUCTOR_STATE_H
#define TRACECTL_COLLECTOR_PTRACE_CONDUCTOR_STATE_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "collector/ptrace/conductor.h"

struct conductor_hold {
    pid_t tid;
    int signal;                             /* which has stopped the thread */
    uint64_t since, end;                    /* CLOCK_MONOTONIC */
    struct conductor_preemption preemption; /* g 0: none */
};

/* The counters of struct conductor_counts, which one process writes and others read. */
struct conductor_counters {
    _Atomic uint64_t stops, holds, let_go, timed_out, ended, refused, preempted, preempt_failed, foreign,
        signals, held_ns;
};

struct conductor {
    struct conductor_options options;
    struct conductor_counters counts;

    /* Of the process that made the conductor. */
    pid_t maker;
    pthread_t host; /* waits in clone(2) for the conductor's process to end */
    pthread_mutex_t seizing;
    int requests; /* the end for writing; closed to end the conductor */

    /* Between both. */
    sem_t answered;
    int answer; /* to CONDUCTOR_SEIZE, and of the start: 0 or a negative errno */
    atomic_bool gone;
    pid_t pid;

    /* Of the conductor's process. */
    int inbox;                    /* the other end of `requests` */
    int child_fd;                 /* signalfd: a tracee has something to tell */
    struct conductor_hold *asked; /* the thread that `stopped` is asked about; NULL otherwise */
    struct conductor_hold holds[CONDUCTOR_HOLDS_MAX];
    size_t hold_count;
};

enum conductor_request_kind {
    CONDUCTOR_SEIZE,
    CONDUCTOR_LET_GO,
    CONDUCTOR_PREEMPT,
};

struct conductor_request {
    enum conductor_request_kind kind;
    pid_t tid;
    struct conductor_preemption preemption;
};

#endif
