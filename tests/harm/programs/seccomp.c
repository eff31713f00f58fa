/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A filter that kills the process at any system call but write, futex, rt_sigreturn and exit_group. Return
 * probes and optimised probes of newer kernels make system calls (335 uretprobe, 336 uprobe) in the program's
 * name. Work is done under the filter, below open calls that were entered before it.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CALLED __attribute__((noipa))
#define ALLOW(NUMBER) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NUMBER, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

CALLED static int enter_filter(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(SYS_write),
        ALLOW(SYS_futex),
        ALLOW(SYS_rt_sigreturn),
        ALLOW(SYS_exit_group),
#ifdef INSTRUMENTED
        ALLOW(SYS_gettid), /* what instrument.c asks at every call */
#endif
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

CALLED static long fib(long n)
{
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

CALLED static long filtered(int level)
{
    if (level == 0)
        return enter_filter() ? -1 : fib(15);
    return filtered(level - 1) + 1;
}

int main(void)
{
    static const char right[] = "right\n", wrong[] = "wrong\n";
    long result = fib(10) + filtered(5) + fib(12);
    int failed = result != 55 + 610 + 5 + 144;

    if (write(1, failed ? wrong : right, 6) != 6)
        failed = 1;
    _exit(failed);
}
