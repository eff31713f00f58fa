/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/tracer/stop_kind.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/ptrace.h>

#ifndef PTRACE_EVENT_STOP
#define PTRACE_EVENT_STOP 128
#endif

#define EVENT_SHIFT 8
#define SIGNAL_MASK 0x7f
#define CALL_STOP (SIGTRAP | 0x80) /* with PTRACE_O_TRACESYSGOOD */

static bool stops_processes(int signal)
{
    return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

enum stop_kind stop_kind_of(int status)
{
    switch (status >> EVENT_SHIFT) {
    case 0:
        return status == CALL_STOP ? STOP_OTHER : STOP_SIGNAL;
    case PTRACE_EVENT_STOP:
        return stops_processes(status & SIGNAL_MASK) ? STOP_GROUP : STOP_TRAP;
    case PTRACE_EVENT_FORK:
    case PTRACE_EVENT_VFORK:
    case PTRACE_EVENT_CLONE:
        return STOP_BIRTH;
    case PTRACE_EVENT_VFORK_DONE:
        return STOP_VFORK_DONE;
    case PTRACE_EVENT_EXEC:
        return STOP_EXEC;
    default:
        return STOP_OTHER;
    }
}
