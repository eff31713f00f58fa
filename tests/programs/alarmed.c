/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls densely while a timer's handler, every millisecond, does so too, in a forked child as well; prints how often. */
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))
#define CALLS 600000

static volatile unsigned long leaves, handled_calls;

NOINLINE static void handled(void)
{
    handled_calls = handled_calls + 1;
}

static void on_alarm(int number)
{
    (void)number;
    for (int i = 0; i < 200; i++)
        handled();
}

NOINLINE static void leaf(void)
{
    leaves = leaves + 1;
}

int main(void)
{
    struct itimerval often = {{0, 1000}, {0, 1000}};
    pid_t child;

    signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < CALLS; i++)
        leaf();
    child = fork(); /* which has no timer */
    for (int i = 0; i < CALLS; i++)
        leaf();
    if (!child)
        _exit(0);
    while (waitpid(child, NULL, 0) < 0)
        continue;
    often.it_value.tv_usec = often.it_interval.tv_usec = 0;
    setitimer(ITIMER_REAL, &often, NULL);
    printf("handled %lu\nleaf %lu\n", handled_calls, leaves + CALLS);
    return 0;
}
