/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* 300 signals of a timer, ten thousand a second, interrupt calls wherever they are; handled on an alternate
 * stack. */
#include <sys/time.h>

#include "harm.h"

enum { SIGNALS = 300, CALLS = 10000 };

static volatile long handled, sum;

CALLED static void count_signal(long n)
{
    handled = handled + n;
}

CALLED static void on_alarm(int number)
{
    static const struct itimerval off;

    count_signal(1);
    if (handled == SIGNALS) {
        setitimer(ITIMER_REAL, &off, NULL);
        signal(SIGALRM, SIG_IGN); /* forgets the one that may be pending */
    }
}

CALLED static long leaf(long n)
{
    return n & 7;
}

CALLED static long middle(long n)
{
    return leaf(n) + leaf(n + 1);
}

static long work(void)
{
    static char stack[65536];
    const struct itimerval often = {{0, 100}, {0, 100}};
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof(stack)};
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_ONSTACK | SA_RESTART};

    handled = sum = 0;
    if (sigaltstack(&alternate, NULL) || sigaction(SIGALRM, &action, NULL) ||
        setitimer(ITIMER_REAL, &often, NULL))
        return -1;
    for (long i = 0; i < CALLS; i++)
        sum = sum + middle(i);
    while (handled < SIGNALS)
        usleep(50);
    return sum + handled;
}

/* leaf() is 3.5 on average, twice a call. */
HARM_MAIN(CALLS * 7L + SIGNALS)
