/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/ptrace/passed_signal.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/ptrace.h>

#include "base/cleanup.h"
#include "collector/arch/thread_registers.h"
#include "collector/process/live_resume.h"

static bool interrupts_a_call(pid_t tid)
{
    struct user_regs_struct registers;

    return !ptrace(PTRACE_GETREGS, tid, NULL, &registers) && registers_in_call(&registers) &&
           registers_result(&registers) == -EINTR;
}

/* Whether a signal does nothing to the process, so that only its tracer would ever see it. */
static bool is_ignored(pid_t tid, int number)
{
    const uint64_t by_default = 1ull << (SIGCHLD - 1) | 1ull << (SIGURG - 1) | 1ull << (SIGWINCH - 1);
    uint64_t ignored = 0, caught = UINT64_MAX, bit = 1ull << (number - 1);
    AUTO_FCLOSE FILE *status = NULL;
    char path[64], line[256];

    snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
    status = fopen(path, "re");
    while (status && fgets(line, sizeof(line), status))
        if (sscanf(line, "SigIgn: %" SCNx64, &ignored) != 1 && sscanf(line, "SigCgt: %" SCNx64, &caught) == 1)
            break;
    return bit & ignored || (bit & by_default && !(bit & caught));
}

void passed_signal_go_on(pid_t tid, int number)
{
    if (interrupts_a_call(tid) && is_ignored(tid, number))
        live_resume_call(tid, NULL);
    ptrace(PTRACE_CONT, tid, NULL, (void *)(intptr_t)number);
}
