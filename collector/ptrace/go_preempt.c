/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/ptrace/go_preempt.h"

#include <errno.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <unistd.h>

#include "collector/process/process.h"

#define STACK_PREEMPT 0xfffffffffffffadeull /* runtime.stackPreempt: above every stack pointer */

static int write_memory(pid_t tid, uint64_t address, const void *bytes, size_t size)
{
    struct iovec from = {(void *)bytes, size}, to = {(void *)(uintptr_t)address, size};

    if (process_vm_writev(tid, &from, 1, &to, 1, 0) != (ssize_t)size)
        return errno ? -errno : -EFAULT;
    return 0;
}

/* runtime.preemptM calls tgkill(2): what its handler sees then. */
static int sign_as_runtime(pid_t tid)
{
    siginfo_t signal;
    pid_t process = process_of_thread(tid);

    if (process < 0)
        return (int)process;
    memset(&signal, 0, sizeof(signal));
    signal.si_signo = SIGURG;
    signal.si_code = SI_TKILL;
    signal.si_pid = process;
    signal.si_uid = getuid();
    return ptrace(PTRACE_SETSIGINFO, tid, NULL, &signal) ? -errno : 0;
}

int go_preempt_request(pid_t tid, const struct thread_holder_preemption *where)
{
    const uint64_t guard = STACK_PREEMPT;
    const uint8_t yes = 1;
    int r = sign_as_runtime(tid);

    if (!r)
        r = write_memory(tid, where->g + where->preempt_offset, &yes, sizeof(yes));
    return r ? r : write_memory(tid, where->g + where->stackguard_offset, &guard, sizeof(guard));
}
