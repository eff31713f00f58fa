/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A thread of another process that is made to stand still by ptrace(2), and let go, without noticing:
 * PTRACE_SEIZE and PTRACE_INTERRUPT send no signal, one that arrives just then is handed on to the thread,
 * and a system call that was interrupted is made anew (live_resume.h). When the thread that traces it ends,
 * killed or not, the kernel lets it go.
 */
#ifndef TRACECTL_COLLECTOR_TARGET_TRACEE_H
#define TRACECTL_COLLECTOR_TARGET_TRACEE_H

#include <stdbool.h>
#include <sys/types.h>

/* All by the calling thread. */
struct tracee {
    pid_t tid;
    int signal; /* one that it was about to get when it stopped, or 0 */
    bool stopped;
};

/* Asks the thread to stop. -ESRCH: it has ended; -EPERM: somebody else traces it, or it is another user's. */
int tracee_stop(pid_t tid, struct tracee *ret_tracee);

/* 1: it stands still; 0: not yet; -ESRCH: it is gone. */
int tracee_has_stopped(struct tracee *tracee);

/* Time between two looks. */
void tracee_pause(void);

/* Lets it go on, if it has stopped, and forgets it. `elsewhere`: its registers have been changed, so that it
 * does not go back to a call. */
void tracee_let_go(struct tracee *tracee, bool elsewhere);

#endif
