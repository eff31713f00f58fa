/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to collector/stacks/: one thread or goroutine with its activations. */
#ifndef TRACECTL_COLLECTOR_STACKS_SAMPLED_THREAD_H
#define TRACECTL_COLLECTOR_STACKS_SAMPLED_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "collector/stacks/live_unwind.h"
#include "collector/stacks/thread_catch.h"

struct sampled_thread {
    pid_t pid, tid; /* tid 0: a goroutine that no thread runs */
    uint64_t goid;  /* 0: a thread */
    char state[64];
    bool known; /* the stack is: false, it would not hold still */
    bool whole; /* the last activation is the outermost */
    bool moved;
    struct live_activation *activations; /* innermost first */
    size_t count, capacity;
    uint64_t switches;              /* of its thread when it was caught */
    const struct live_copy *copies; /* its stack, borrowed */
    size_t copy_count;
};

/* All zero is empty. */
struct sampled_threads {
    struct sampled_thread *items;
    size_t count, capacity;
    size_t native; /* so many are threads, by ascending tid; the others, behind them, are goroutines */
};

void sampled_thread_release(struct sampled_thread *thread);
void sampled_threads_release(struct sampled_threads *threads);

/* Appends an activation. False: no memory. */
bool sampled_thread_add(struct sampled_thread *thread, const struct live_activation *activation);

/* Whether two samples of a thread are at the same place. `start` and `end` are the code of its own program:
 * what is called from there, and in which order, is compared; within the innermost function of the program
 * the place does not matter when it is also the innermost of all. Where the program's own code is not on the
 * stack, all calls are compared. */
bool sampled_thread_stays(const struct sampled_thread *before, const struct sampled_thread *now,
                          uint64_t start, uint64_t end);

#endif
