/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <signal.h>
#include <sys/ptrace.h>

#include "base/array.h"
#include "collector/tracer/stop_kind.h"

#ifndef PTRACE_EVENT_STOP
#define PTRACE_EVENT_STOP 128
#endif

#define EVENT(event) (SIGTRAP | (event) << 8)

Test(stop_kind, of_every_status)
{
    static const struct {
        int status;
        enum stop_kind kind;
    } cases[] = {
        {SIGTERM, STOP_SIGNAL},
        {SIGTRAP, STOP_SIGNAL}, /* the program's own: a breakpoint of its, or raise() */
        {SIGSTOP, STOP_SIGNAL}, /* about to be delivered: the stop of the process comes after it */
        {SIGCONT, STOP_SIGNAL},
        {64, STOP_SIGNAL}, /* SIGRTMAX */
        {SIGTRAP | 0x80, STOP_OTHER},
        {EVENT(PTRACE_EVENT_STOP), STOP_TRAP},
        {SIGCONT | PTRACE_EVENT_STOP << 8, STOP_TRAP},
        {SIGSTOP | PTRACE_EVENT_STOP << 8, STOP_GROUP},
        {SIGTSTP | PTRACE_EVENT_STOP << 8, STOP_GROUP},
        {SIGTTIN | PTRACE_EVENT_STOP << 8, STOP_GROUP},
        {SIGTTOU | PTRACE_EVENT_STOP << 8, STOP_GROUP},
        {EVENT(PTRACE_EVENT_FORK), STOP_BIRTH},
        {EVENT(PTRACE_EVENT_VFORK), STOP_BIRTH},
        {EVENT(PTRACE_EVENT_CLONE), STOP_BIRTH},
        {EVENT(PTRACE_EVENT_VFORK_DONE), STOP_VFORK_DONE},
        {EVENT(PTRACE_EVENT_EXEC), STOP_EXEC},
        {EVENT(PTRACE_EVENT_EXIT), STOP_OTHER}, /* not asked for */
        {EVENT(PTRACE_EVENT_SECCOMP), STOP_OTHER},
        {EVENT(99), STOP_OTHER},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        cr_expect_eq(stop_kind_of(cases[i].status), cases[i].kind, "status 0x%x", (unsigned)cases[i].status);
}
