/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The first thread ends at SIGUSR1, the other one repeats its work: /proc/PID is that of a zombie from then on, and shows
 * no memory. */
#include <pthread.h>
#include <stdlib.h>

#include "harm.h"

static volatile sig_atomic_t leaves;

CALLED static long step(long n)
{
    return 3 * n + 1;
}

static long work(void)
{
    long sum = 0;

    for (long i = 0; i < 20; i++)
        sum += step(i);
    return sum;
}

CALLED static void on_usr1(int number)
{
    leaves = 1;
}

CALLED static void *repeat(void *unused)
{
    exit(harm_loop(3 * 190 + 20));
    return unused;
}

int main(void)
{
    struct sigaction action = {.sa_handler = harm_on_term};
    pthread_t other;

    sigaction(SIGTERM, &action, NULL);
    action.sa_handler = on_usr1;
    sigaction(SIGUSR1, &action, NULL);
    if (pthread_create(&other, NULL, repeat, NULL))
        return 1;
    while (!leaves)
        usleep(1000);
    pthread_exit(NULL);
}
