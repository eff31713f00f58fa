/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The stacks of live processes at one moment, taken without harm to them.
 *
 * Why: where returns are inferred, at the end of a recording it is unknown which of the innermost calls of a
 * thread that lives on are still open. Its stack tells.
 *
 * A thread that sleeps in the kernel must not be woken: epoll_wait and others would return EINTR to a program
 * that does not expect it. It need not be, either: it cannot change its registers or its stack. The kernel is
 * asked for the registers (live_threads.h), the stack is copied with process_vm_readv(2), and in the end the
 * kernel is asked again: a thread that is off the processor and has been switched no more often than before
 * did not run. Threads that run are stopped for these milliseconds (live_stop.h).
 *
 *     live_stacks_read        stops running threads, copies registers and stacks
 *     (the caller ends its recording: from here on it notes no event)
 *     live_stacks_confirm     checks which ran in between, lets the stopped ones go
 *     live_stack_frames       at leisure, thread by thread
 *
 * What such a thread did up to the end of the recording is then in both, the recording and its stack, or the
 * thread is said to be uncertain.
 *
 * Only the stack that a thread was born with is looked at: what lies on alternate signal stacks and
 * coroutines' stacks stays unknown, and so does everything of a thread that is on such a stack.
 */
#ifndef TRACECTL_COLLECTOR_STACKS_LIVE_STACK_H
#define TRACECTL_COLLECTOR_STACKS_LIVE_STACK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "collector/stacks/live_unwind.h"

struct error;

struct live_stacks;

/* Takes the stacks of all threads of these processes; processes that are gone have none. Until
 * live_stacks_confirm or live_stacks_free the threads that ran stand still: be quick. The same for threads of
 * processes that sleep in a stop (SIGSTOP) or under a debugger: they are read as they are. */
int live_stacks_read(const pid_t *pids, size_t count, struct live_stacks **ret_stacks, struct error *err);

/* Drops the threads that ran since live_stacks_read, and lets go those that were stopped; the latter on
 * failure too, and then nothing is certain. */
int live_stacks_confirm(struct live_stacks *stacks, struct error *err);

/* The frames of a thread. The caller releases them. -ESRCH: it is not among those that were taken. -EAGAIN:
 * it ran in between, or could not be stopped: nothing is known. -ENOMEM. */
int live_stack_frames(struct live_stacks *stacks, pid_t tid, struct live_stack *ret_stack);

/* How many threads were taken, how many of them were stopped for it, of how many nothing is known, and how
 * long the stopped ones stood still. */
struct live_stacks_counts {
    size_t threads, stopped, uncertain;
    uint64_t still_ns;
};

struct live_stacks_counts live_stacks_count(const struct live_stacks *stacks);

/* Lets everything go. Accepts NULL. */
void live_stacks_free(struct live_stacks *stacks);

#endif
