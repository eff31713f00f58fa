/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/target/tracee.h"

#include <errno.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#include "collector/target/live_resume.h"

#ifndef PTRACE_EVENT_STOP
#define PTRACE_EVENT_STOP 128
#endif

int tracee_stop(pid_t tid, struct tracee *ret_tracee)
{
    if (ptrace(PTRACE_SEIZE, tid, NULL, NULL))
        return -errno;
    ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
    *ret_tracee = (struct tracee){.tid = tid};
    return 0;
}

int tracee_has_stopped(struct tracee *tracee)
{
    int status;
    pid_t got;

    if (tracee->stopped)
        return 1;
    got = waitpid(tracee->tid, &status, __WALL | WNOHANG);
    if (!got || (got < 0 && errno == EINTR))
        return 0;
    if (got < 0 || !WIFSTOPPED(status))
        return -ESRCH;
    tracee->stopped = true;
    if (status >> 16 != PTRACE_EVENT_STOP)
        tracee->signal = WSTOPSIG(status);
    return 1;
}

void tracee_pause(void)
{
    nanosleep(&(struct timespec){0, 20000}, NULL);
}

void tracee_let_go(struct tracee *tracee, bool elsewhere)
{
    if (!tracee->stopped)
        return;
    if (!elsewhere && !tracee->signal)
        live_resume_call(tracee->tid); /* not before: a signal may have come since it was stopped */
    ptrace(PTRACE_DETACH, tracee->tid, NULL, (void *)(intptr_t)tracee->signal);
    tracee->stopped = false;
}
