/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A parent that is told by SIGCHLD of every change of its children, without SA_NOCLDSTOP, and waits meanwhile
 * in a system call that a signal ends early. Children that execute a program must only end: counts stops and
 * continuations that it is told of, and more waits that ended early than children.
 */
#include <errno.h>
#include <poll.h>
#include <sys/wait.h>

#include "harm.h"

enum { CHILDREN = 10 };

static volatile sig_atomic_t changes;

CALLED static void on_child(int number, siginfo_t *info, void *context)
{
    changes += info->si_code == CLD_STOPPED || info->si_code == CLD_CONTINUED;
}

CALLED static long run_child(void)
{
    int status, interrupted = 0;
    pid_t pid = fork();

    if (pid == 0) {
        execl("/bin/sleep", "sleep", "0.02", (char *)NULL);
        _exit(127);
    }
    while (waitpid(pid, &status, WNOHANG) == 0)
        interrupted += poll(NULL, 0, 1000) < 0 && errno == EINTR;
    return status || interrupted > 1;
}

static long work(void)
{
    struct sigaction action;
    long wrong = 0;

    memset(&action, 0, sizeof(action));
    action.sa_sigaction = on_child;
    action.sa_flags = SA_SIGINFO;
    changes = 0;
    sigaction(SIGCHLD, &action, NULL);
    for (int i = 0; i < CHILDREN; i++)
        wrong += run_child();
    return wrong + 100 * changes;
}

HARM_MAIN(0)
