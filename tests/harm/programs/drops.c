/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Privileges are dropped between two pieces of work, for good: user, groups, capabilities of children by
 * no_new_privs. Not as root (of a set-user-id file, say) there is nothing to drop, and the result is the
 * same.
 */
#include <grp.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "harm.h"

CALLED static long leaf(long n)
{
    return n + 1;
}

CALLED static long piece(long n)
{
    long sum = 0;

    for (long i = 0; i < n; i++)
        sum += leaf(i);
    return sum;
}

CALLED static int drop(void)
{
    if (geteuid() == 0 &&
        (setgroups(0, NULL) || setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534)))
        return -1;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) || geteuid() != 65534;
}

static long work(void)
{
    long sum = piece(100), dropped = drop();
    int status = -1;
    pid_t pid = fork();

    if (pid == 0)
        _exit(piece(10) != 55);
    if (pid > 0)
        waitpid(pid, &status, 0);
    return sum + piece(100) + dropped * 100000 + status * 1000000;
}

HARM_MAIN(2 * 5050L)
