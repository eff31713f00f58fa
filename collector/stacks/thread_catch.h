/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Registers and stacks of all threads of a live process, each of one moment of that thread, without harm to
 * it.
 *
 * A thread that is off the processor is read as it is: it is not stopped or woken. The kernel is asked for
 * its registers (live_threads.h), its stack is copied, and the kernel is asked again: unless it has been
 * switched in between, both belong together. First all threads of the process at once, which is quick, and
 * then those that ran meanwhile one by one, where the moment is short. What is on a processor all the time is
 * stopped (live_stop.h), one thread at a time, for as long as it takes to copy its stack.
 *
 * A thread that is stopped already (SIGSTOP, a debugger) stays as it is.
 */
#ifndef TRACECTL_COLLECTOR_STACKS_THREAD_CATCH_H
#define TRACECTL_COLLECTOR_STACKS_THREAD_CATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "collector/stacks/live_copy.h"
#include "collector/stacks/live_maps.h"
#include "collector/stacks/live_threads.h"

struct error;

enum { CAUGHT_COPIES = 2 };

struct caught_thread {
    struct live_thread seen; /* when it was caught; where it was not, when it was last seen */
    /* Its stack; of one that runs a signal handler on a stack of its own, also the one below. */
    struct live_copy copies[CAUGHT_COPIES];
    size_t copy_count; /* 0: its stack could not be read */
    bool caught;       /* registers and copies are of one moment */
    bool ran;          /* since it was caught before; true the first time */
};

/* All zero but for `pid` before the first time. */
struct caught_process {
    pid_t pid;
    pid_t alive; /* the main thread, or another one when that has ended: /proc and memory are reached by it */
    struct live_maps maps;
    unsigned maps_read;            /* how often */
    struct caught_thread *threads; /* by ascending tid */
    size_t count;
};

/* Summed up over several processes and times. */
struct catch_counts {
    size_t stopped;           /* so many threads were stopped for it */
    uint64_t longest_stop_ns; /* how long the one that stood still longest did */
};

/* Catches the threads that the process has now; those that did not run since the last time keep what was
 * caught then. A process that is gone has no threads. `counts` is added to. On failure the process is as it
 * was, or has no threads. */
int catch_threads(struct live_reader *reader, struct caught_process *process, struct catch_counts *counts,
                  struct error *err);

void caught_process_release(struct caught_process *process);

#endif
