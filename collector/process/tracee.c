/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/process/tracee.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "collector/process/live_resume.h"

#ifndef PTRACE_EVENT_STOP
#define PTRACE_EVENT_STOP 128
#endif

#define CALL_STOP (SIGTRAP | 0x80) /* with PTRACE_O_TRACESYSGOOD */
#define CALL_ENTRY 1               /* PTRACE_EVENTMSG_SYSCALL_ENTRY */
#define LOOK_NS 5000000            /* between two looks, should a SIGCHLD be missed */
#define STOPS_MOST 64              /* by SIGSTOP and SIGCONT on the way to another one */
#define RUNNABLE_PATIENCE 5        /* times the patience for one that waits for a processor */

int tracee_stop(pid_t tid, struct tracee *ret_tracee)
{
    if (ptrace(PTRACE_SEIZE, tid, NULL, (void *)PTRACE_O_TRACESYSGOOD))
        return -errno;
    ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
    *ret_tracee = (struct tracee){.tid = tid};
    return 0;
}

static enum tracee_stop kind_of_stop(pid_t tid, int status)
{
    unsigned long message = 0;

    if (status >> 8 == PTRACE_EVENT_STOP)
        return TRACEE_EVENT;
    if (status != CALL_STOP)
        return TRACEE_SIGNAL;
    ptrace(PTRACE_GETEVENTMSG, tid, NULL, &message);
    return message == CALL_ENTRY ? TRACEE_CALL_ENTRY : TRACEE_CALL_EXIT;
}

/* As tracee_has_stopped(). */
static int look(struct tracee *tracee)
{
    siginfo_t stop = {0};

    if (waitid(P_PID, (id_t)tracee->tid, &stop, WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WALL))
        return errno == EINTR ? 0 : -ESRCH;
    if (!stop.si_pid)
        return 0;
    if (stop.si_code != CLD_TRAPPED && stop.si_code != CLD_STOPPED) {
        waitid(P_PID, (id_t)tracee->tid, &stop, WEXITED | WNOHANG | __WALL);
        return -ESRCH;
    }
    tracee->stopped = true;
    tracee->stop = kind_of_stop(tracee->tid, stop.si_status);
    tracee->signal = tracee->stop == TRACEE_SIGNAL ? stop.si_status : 0;
    return 1;
}

int tracee_has_stopped(struct tracee *tracee)
{
    int r;

    if (tracee->stopped)
        return 1;
    r = look(tracee);
    if (r > 0 && tracee->stop == TRACEE_EVENT)
        tracee->anew = live_resume_call(tracee->tid, &tracee->interrupted);
    return r;
}

void tracee_pause(void)
{
    nanosleep(&(struct timespec){0, 20000}, NULL);
}

/* Whether the thread runs or waits for a processor, as /proc says. */
static bool is_runnable(pid_t tid)
{
    AUTO_FCLOSE FILE *file = NULL;
    char path[64], line[128], *state;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)tid);
    file = fopen(path, "re");
    state = file && fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;
    return state && state[1] && state[2] == 'R';
}

static int wait_for_stop(struct tracee *tracee, uint64_t patience_ns)
{
    uint64_t begin = clock_ns(CLOCK_MONOTONIC);
    sigset_t child;

    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    for (;;) {
        int r = look(tracee);
        uint64_t waited = clock_ns(CLOCK_MONOTONIC) - begin;

        if (r)
            return r > 0 ? 0 : r;
        if (waited > patience_ns * RUNNABLE_PATIENCE || (waited > patience_ns && !is_runnable(tracee->tid)))
            return -ETIMEDOUT;
        sigtimedwait(&child, NULL, &(struct timespec){0, LOOK_NS});
    }
}

int tracee_run_to(struct tracee *tracee, enum tracee_stop stop, uint64_t patience_ns)
{
    int request = stop == TRACEE_EVENT ? PTRACE_CONT : PTRACE_SYSCALL, r = 0, stops = 0;

    do {
        if (stop == TRACEE_EVENT) /* any other stop makes the kernel forget it */
            ptrace(PTRACE_INTERRUPT, tracee->tid, NULL, NULL);
        if (tracee->stopped && ptrace(request, tracee->tid, NULL, (void *)(intptr_t)tracee->signal))
            return -ESRCH;
        tracee->stopped = false;
        tracee->signal = 0;
        r = wait_for_stop(tracee, patience_ns);
    } while (!r && tracee->stop != stop && ++stops < STOPS_MOST);
    return !r && tracee->stop != stop ? -ETIMEDOUT : r;
}

void tracee_let_go(struct tracee *tracee)
{
    if (!tracee->stopped)
        return;
    if (tracee->anew)
        live_resume_undo(tracee->tid, &tracee->interrupted);
    ptrace(PTRACE_DETACH, tracee->tid, NULL, (void *)(intptr_t)tracee->signal);
    tracee->stopped = false;
}
