/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * All memory is locked, what is mapped later on, too: in a process that may lock only a little more than it
 * has, since all that is mapped counts. With RAW by the system call itself, which no import tells of.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "harm.h"

#ifdef RAW
#define lock_all(how) syscall(SYS_mlockall, how)
#else
#define lock_all(how) mlockall(how)
#endif

CALLED static long in_memory(long n)
{
    char *mapped = mmap(NULL, (size_t)n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    long last;

    if (mapped == MAP_FAILED)
        return -1;
    mapped[n - 1] = 1;
    last = mapped[n - 1];
    munmap(mapped, (size_t)n);
    return last;
}

static long work(void)
{
    long sum = 0;

    if (lock_all(MCL_CURRENT | MCL_FUTURE))
        return -1;
    for (int i = 0; i < 10; i++)
        sum += in_memory(1 << 16);
    return sum;
}

HARM_MAIN(10)
