/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/process/live_resume.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "collector/arch/thread_registers.h"

static bool can_be_made_anew(uint64_t number)
{
    static const uint64_t calls[] = {SYS_epoll_wait,      SYS_epoll_pwait,  SYS_epoll_pwait2,
                                     SYS_semop,           SYS_semtimedop,   SYS_io_getevents,
                                     SYS_rt_sigtimedwait, SYS_io_pgetevents};

    for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
        if (calls[i] == number)
            return true;
    return false;
}

/* Whether a signal that the thread does not block waits for it or its process. True when that is unknown. */
static bool signal_waits(pid_t tid)
{
    uint64_t pending = 0, blocked = 0, signals;
    AUTO_FCLOSE FILE *status = NULL;
    char path[64], line[256];
    int seen = 0;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
    status = fopen(path, "re");
    while (status && fgets(line, sizeof(line), status)) {
        if (sscanf(line, "SigPnd: %" SCNx64, &signals) == 1 ||
            sscanf(line, "ShdPnd: %" SCNx64, &signals) == 1) {
            pending |= signals;
            seen++;
        } else if (sscanf(line, "SigBlk: %" SCNx64, &blocked) == 1) {
            seen++;
        }
    }
    return seen < 3 || pending & ~blocked;
}

bool live_resume_call(pid_t tid, struct user_regs_struct *ret_before)
{
    struct user_regs_struct registers, before;
    struct iovec io = {&registers, sizeof(registers)};
    long instruction;

    if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &io) || io.iov_len != sizeof(registers))
        return false;
    if (registers_result(&registers) != -EINTR || !can_be_made_anew(registers_call_number(&registers)) ||
        signal_waits(tid))
        return false;
    errno = 0;
    instruction = ptrace(PTRACE_PEEKTEXT, tid, (void *)(registers_pc(&registers) - SYSTEM_CALL_BYTES), NULL);
    if (errno || !code_is_system_call((const uint8_t *)&instruction))
        return false;
    before = registers;
    registers_repeat_call(&registers);
    if (ptrace(PTRACE_SETREGSET, tid, (void *)NT_PRSTATUS, &io))
        return false;
    if (ret_before)
        *ret_before = before;
    return true;
}

void live_resume_undo(pid_t tid, const struct user_regs_struct *before)
{
    struct iovec io = {(void *)before, sizeof(*before)};

    if (signal_waits(tid))
        ptrace(PTRACE_SETREGSET, tid, (void *)NT_PRSTATUS, &io);
}
