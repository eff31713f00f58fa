/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Processes for the thread holder to hold threads of, and a thread holder whose signals the tests send. */
#ifndef TRACECTL_TESTS_UNIT_COLLECTOR_HOLDER_TARGET_H
#define TRACECTL_TESTS_UNIT_COLLECTOR_HOLDER_TARGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "collector/ptrace/thread_holder.h"

/* What a target and its test share. */
struct scene {
    pid_t tids[2];
    _Atomic uint64_t turns[2]; /* of the loop of each thread */
    atomic_int signals;        /* that a handler has got */
    atomic_int value, code;    /* of the last one */
    atomic_int step;           /* how far the target has come */
    atomic_bool end;
    int pipe[2];
};

/* Memory that children share. Never freed: a test's process is short. */
struct scene *scene_new(void);

/* Forks a child that stops as a held process does after exec, then runs `run` and exits with its result. */
pid_t target_start(int (*run)(struct scene *scene), struct scene *scene);

/* The thread holder traces the stopped process, and it goes on. */
void target_hold(struct thread_holder *holder, pid_t pid);

/* How it ended: the exit status, or 128 + the signal. */
int target_status(pid_t pid);

/* Options that take for the thread holder's what schedule() sends: a SIGURG with a certain value. */
struct thread_holder_options thread_holder_test_options(
    uint64_t (*stopped)(void *context, pid_t tid, const struct thread_holder_stop *stop), void *context);

/* Makes the thread stop. Returns false when it is gone. */
bool schedule(pid_t pid, pid_t tid);

/* Waits until the condition holds; a test that waits in vain runs into its time limit. */
void pause_briefly(void);
#define WAIT_FOR(condition) \
    while (!(condition)) \
    pause_briefly()

#endif
