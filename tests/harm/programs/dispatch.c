/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Syscall User Dispatch, as Wine and emulators use it: system calls that do not come out of the C library are
 * not Linux's, and go to a handler. It is turned on in a function that returns while it is on. */
#include <stdlib.h>
#include <sys/prctl.h>
#include <ucontext.h>

#include "harm.h"

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif
#define FOREIGN_CALL 0x1234
#define FOREIGN_ANSWER 42

static volatile char selector;
static volatile long strange;

CALLED static void on_system_call(int number, siginfo_t *info, void *context)
{
    strange += info->si_syscall != FOREIGN_CALL;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = FOREIGN_ANSWER;
}

CALLED static void find_library(unsigned long *ret_start, unsigned long *ret_end)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];

    while (maps && fgets(line, sizeof(line), maps))
        if (strstr(line, "r-xp") && strstr(line, "/libc."))
            sscanf(line, "%lx-%lx", ret_start, ret_end);
    if (maps)
        fclose(maps);
}

CALLED static void begin(void)
{
    struct sigaction action = {.sa_sigaction = on_system_call, .sa_flags = SA_SIGINFO};
    unsigned long start = 0, end = 0;

    find_library(&start, &end);
    sigaction(SIGSYS, &action, NULL);
    if (prctl(PR_SET_SYSCALL_USER_DISPATCH, 1, start, end - start, &selector))
        exit(3);
    selector = 1;
}

CALLED static long call_foreign(void)
{
    long result;

    __asm__ volatile("syscall" : "=a"(result) : "a"(FOREIGN_CALL) : "rcx", "r11", "memory");
    return result;
}

CALLED static long compute(long level)
{
    return level ? compute(level - 1) + 1 : call_foreign();
}

static long work(void)
{
    long sum = 0;

    begin();
    for (int i = 0; i < 5; i++)
        sum += compute(i);
    selector = 0;
    prctl(PR_SET_SYSCALL_USER_DISPATCH, 0, 0, 0, 0);
    return sum + strange * 1000;
}

HARM_MAIN(5 * FOREIGN_ANSWER + 10)
