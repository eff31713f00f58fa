/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The threads that the thread holder traces: what they stop for, and how they continue. For the thread holder's
 * process only. */
#ifndef TRACECTL_COLLECTOR_PTRACE_THREAD_HOLDER_TRACEES_H
#define TRACECTL_COLLECTOR_PTRACE_THREAD_HOLDER_TRACEES_H

#include "collector/ptrace/thread_holder_state.h"

/* Traces all threads of a process. Returns 0, -ESRCH, -EPERM. */
int tracees_seize(pid_t pid);

/* Deals with one thing that tracees have to tell. Returns false when there is nothing. */
bool tracees_handle_one(struct thread_holder *holder);

/* Ends the hold of a thread if it is held. `preemption`: NULL for none. */
void tracees_let_go(struct thread_holder *holder, pid_t tid,
                    const struct thread_holder_preemption *preemption);

/* Ends the holds whose time is over at `now` (CLOCK_MONOTONIC). Returns when the next one's is, or
 * UINT64_MAX.
 */
uint64_t tracees_end_overdue(struct thread_holder *holder, uint64_t now);

/* Detaches the threads that are held. The others are let go by the kernel when the process ends, without
 * being interrupted. */
void tracees_detach_held(struct thread_holder *holder);

#endif
