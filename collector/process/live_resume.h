/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Undoes what an interruption by ptrace(2) does to a system call that does not restart on its own. */
#ifndef TRACECTL_COLLECTOR_PROCESS_LIVE_RESUME_H
#define TRACECTL_COLLECTOR_PROCESS_LIVE_RESUME_H

#include <stdbool.h>
#include <sys/types.h>
#include <sys/user.h>

/* Thread `tid` stands in PTRACE_EVENT_STOP of the calling thread. If a system call of it is about to return
 * EINTR although no signal waits for it, and the call is one that has done nothing yet when it returns EINTR
 * (signal(7), "Interruption of system calls", those that are never restarted), the thread is set back to the
 * instruction that makes the call. A timeout of the call begins anew. Returns whether that was done;
 * `*ret_before` is what its registers were then (NULL: not wanted). */
bool live_resume_call(pid_t tid, struct user_regs_struct *ret_before);

/* Lets such a call return EINTR after all if a signal waits for the thread by now. */
void live_resume_undo(pid_t tid, const struct user_regs_struct *before);

#endif
