// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A function that is called all the time, hot(), and others that are not: rare_a() to rare_h(), each of which
 * calls hot() once. At the end it says how often it has called each.
 *
 *     hot_rare run SECONDS     of CPU time: hot() without a pause; every rare one a hundred times a second
 *     hot_rare bursts N SIZE   N times: hot() SIZE times at once, every rare one, 20 ms of sleep
 *     hot_rare cools           as `run`, until SIGUSR1: from then on only the rare ones, until SIGTERM
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static volatile unsigned long sink;
static unsigned long hot_calls, rare_rounds;

__attribute__((noinline)) void hot(unsigned long n)
{
    if (n & 1)
        sink += n;
    hot_calls++;
}

#define RARE(letter) \
    __attribute__((noinline)) void rare_##letter(void) \
    { \
        if (sink & 1) \
            sink++; \
        hot(sink); \
    }
RARE(a)
RARE(b)
RARE(c)
RARE(d)
RARE(e)
RARE(f)
RARE(g)
RARE(h)

__attribute__((noinline)) void all_rare(void)
{
    static void (*const functions[])(void) = {rare_a, rare_b, rare_c, rare_d, rare_e, rare_f, rare_g, rare_h};

    for (unsigned i = 0; i < sizeof(functions) / sizeof(*functions); i++)
        functions[i]();
    rare_rounds++;
}

/* Of CPU time: how much else the machine does makes no difference. */
static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void run(double seconds)
{
    double end = now() + seconds, next = 0;

    while (now() < end) {
        for (unsigned i = 0; i < 1000; i++)
            hot(i);
        if (now() >= next) {
            all_rare();
            next = now() + 0.01;
        }
    }
}

static void bursts(unsigned count, unsigned size)
{
    const struct timespec pause = {.tv_nsec = 20000000};

    while (count--) {
        for (unsigned i = 0; i < size; i++)
            hot(i);
        all_rare();
        nanosleep(&pause, NULL);
    }
}

static volatile sig_atomic_t cooled, ended;

static void on_signal(int signal)
{
    if (signal == SIGUSR1)
        cooled = 1;
    else
        ended = 1;
}

static void cools(void)
{
    double next = 0;

    signal(SIGUSR1, on_signal);
    signal(SIGTERM, on_signal);
    while (!ended) {
        for (unsigned i = 0; !cooled && i < 1000; i++)
            hot(i);
        if (now() >= next) {
            all_rare();
            next = now() + 0.01;
        }
    }
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "run"))
        run(atof(argv[2]));
    else if (argc == 4 && !strcmp(argv[1], "bursts"))
        bursts((unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]));
    else if (argc == 2 && !strcmp(argv[1], "cools"))
        cools();
    else
        return 2;
    printf("hot %lu\nrare %lu\n", hot_calls, rare_rounds);
    return 0;
}
