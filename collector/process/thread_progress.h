/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whether the threads of a process have left behind what they were doing at a moment. */
#ifndef TRACECTL_COLLECTOR_PROCESS_THREAD_PROGRESS_H
#define TRACECTL_COLLECTOR_PROCESS_THREAD_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Waits until each thread that was running or waited for a processor at the call has run for a while since, waits for
 * something or stands still: it has finished a short system call by then that it was in, or on its way into. On a
 * machine that is busy this takes as long as the processors are given to others. False: not within `most_ns`. A
 * process that is gone has no threads. */
bool threads_progress(pid_t pid, uint64_t most_ns);

#endif
