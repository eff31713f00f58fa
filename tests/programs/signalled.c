/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A service: runs until SIGTERM, SIGHUP or SIGINT, whichever it does not ignore, and shuts down then.
 *
 *     signalled [daemon]      "ready PID" when it is; "signal N" for each that came; status 40 + N of the
 * last
 *
 * "daemon": the service is a grandchild in a session of its own, and the command ends with status 3 at once.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t counts[NSIG];

static void on_signal(int number)
{
    counts[number]++;
}

static __attribute__((noinline)) void serve(int round)
{
    __asm__ volatile("" ::"r"(round) : "memory");
    usleep(10000);
}

static __attribute__((noinline)) void shut_down(int number)
{
    __asm__ volatile("" ::"r"(number) : "memory");
    for (int i = 0; i < 20; i++) /* time for a second one to come */
        usleep(10000);
}

static int last(void)
{
    for (int number = 1; number < NSIG; number++)
        if (counts[number])
            return number;
    return 0;
}

static void handle(int number)
{
    struct sigaction action;

    if (sigaction(number, NULL, &action) || action.sa_handler == SIG_IGN)
        return;
    action.sa_handler = on_signal;
    sigaction(number, &action, NULL);
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "daemon")) {
        if (fork())
            return 3;
        setsid();
        if (fork())
            return 0;
    }
    handle(SIGTERM);
    handle(SIGHUP);
    handle(SIGINT);
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    for (int round = 0; !last() && round < 3000; round++)
        serve(round);
    shut_down(last());
    for (int number = 1; number < NSIG; number++)
        for (int i = 0; i < counts[number]; i++)
            printf("signal %d\n", number);
    return 40 + last();
}
