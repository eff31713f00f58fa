/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A thread of another process that is made to stand still by ptrace(2), and let go, without noticing:
 * PTRACE_SEIZE and PTRACE_INTERRUPT send no signal, one that arrives just then is handed on to the thread,
 * and a system call that was interrupted is made anew (live_resume.h).
 *
 * When the thread that traces it ends, killed or not and at whatever moment, the kernel lets the tracee go,
 * and nothing is missing then:
 *
 *   - its stops are looked at but not taken (WNOWAIT): a signal that it was about to get is delivered. Once a
 *     stop has been taken the kernel would drop it;
 *   - it is never single-stepped: the processor's trap flag would stay;
 *   - a stop at a system call has a number that is no signal (PTRACE_O_TRACESYSGOOD): the kernel would send
 *     SIGTRAP;
 *   - a call that does not restart on its own is set back as soon as the thread stands still.
 */
#ifndef TRACECTL_COLLECTOR_PROCESS_TRACEE_H
#define TRACECTL_COLLECTOR_PROCESS_TRACEE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

/* What made it stand still last. */
enum tracee_stop { TRACEE_EVENT, TRACEE_SIGNAL, TRACEE_CALL_ENTRY, TRACEE_CALL_EXIT };

/* All by the calling thread. */
struct tracee {
    pid_t tid;
    int signal; /* one that it is about to get, or 0 */
    bool stopped;
    enum tracee_stop stop;
    bool anew; /* a call of it will be made anew, and would return EINTR with these registers: */
    struct user_regs_struct interrupted;
};

/* Asks the thread to stop. -ESRCH: it has ended; -EPERM: another process traces it, or it is another user's.
 */
int tracee_stop(pid_t tid, struct tracee *ret_tracee);

/* 1: it stands still; 0: not yet; -ESRCH: it is gone. */
int tracee_has_stopped(struct tracee *tracee);

/* Time between two looks. */
void tracee_pause(void);

/* Makes it run to the next stop of that kind: TRACEE_EVENT (it runs no instruction of its own then, unless it
 * is in a system call), or a system call's begin or end. Signals that it may not block take effect on the
 * way. -ESRCH: it is gone. -ETIMEDOUT: it did not stop, though it had `patience_ns` and does not want to run
 * either (its control group is frozen, or the call waits for something); it may run by now. For a process
 * that has nothing else to do and blocks SIGCHLD. */
int tracee_run_to(struct tracee *tracee, enum tracee_stop stop, uint64_t patience_ns);

/* Lets it continue, if it has stopped, and forgets it. */
void tracee_let_go(struct tracee *tracee);

#endif
