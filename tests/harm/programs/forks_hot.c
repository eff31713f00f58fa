/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Forks without exec while the probes of the parent are hot: 100,000 calls before the first one; then
 * children, each with a child of its own, run the same functions, and return from frames that the parent
 * entered.
 */
#include <stdlib.h>
#include <sys/wait.h>

#include "harm.h"

enum { HOT = 100000, CHILDREN = 10, EACH = 500 };

static volatile long sum;

CALLED static void step(long n)
{
    sum = sum + n;
}

CALLED static long add_up(long count)
{
    sum = 0;
    for (long i = 1; i <= count; i++)
        step(i);
    return sum;
}

CALLED static int right(long count)
{
    return add_up(count) == count * (count + 1) / 2;
}

CALLED static int collect(pid_t pid)
{
    int status;

    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Returns twice, like fork, out of this frame. */
CALLED static pid_t fork_below(int level)
{
    return level == 0 ? fork() : fork_below(level - 1);
}

CALLED static void child(void)
{
    int good = right(EACH);
    pid_t pid = fork_below(3);

    if (pid == 0)
        _exit(!right(EACH / 2));
    _exit(!(good && collect(pid)));
}

static long work(void)
{
    long good = right(HOT);

    for (int i = 0; i < CHILDREN; i++) {
        pid_t pid = fork_below(5);

        if (pid == 0)
            child();
        good += right(10);
        good += collect(pid);
    }
    return good;
}

HARM_MAIN(1 + 2L * CHILDREN)
