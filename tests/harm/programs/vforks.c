/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* vfork: the child calls functions on its parent's stack, then exits or executes another program. */
#include <sys/wait.h>

#include "harm.h"

static volatile long sum;

CALLED static void step(long n)
{
    sum = sum + n;
}

CALLED static void in_child(int count)
{
    for (int i = 0; i < count; i++)
        step(1);
}

CALLED static long one(int kind)
{
    int status;
    pid_t pid = vfork();

    if (pid == 0) {
        in_child(20);
        if (kind)
            execl("/bin/true", "true", (char *)NULL);
        _exit(kind);
    }
    step(100);
    return pid > 0 && waitpid(pid, &status, 0) == pid ? status : -1;
}

static long work(void)
{
    long failed = 0;

    sum = 0;
    for (int i = 0; i < 10; i++)
        failed += one(i % 2);
    return failed + sum;
}

HARM_MAIN(10 * 120L)
