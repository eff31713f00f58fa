/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * usage: busy CALLS_PER_SECOND [THREADS]          (0: as fast as it goes)
 *
 * Calls functions until SIGTERM, and prints "beat N" ten times a second. At SIGTERM each thread checks what
 * it computed against a computation without calls; "unharmed CALLS" is the last line when all is right.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { MAX_THREADS = 64, BATCHES_PER_SECOND = 100, BATCH_UNLIMITED = 10000 };

struct worker {
    pthread_t thread;
    atomic_ulong calls;
    uint64_t value;
};

static struct worker workers[MAX_THREADS];
static unsigned long batch_calls;
static unsigned long pause_ns;
static atomic_bool stopping;

#define MIX(value, number) ((value)*6364136223846793005u + (number))

__attribute__((noinline, noclone)) static uint64_t plus_one(uint64_t value)
{
    return MIX(value, 1);
}

__attribute__((noinline, noclone)) static uint64_t plus_two(uint64_t value)
{
    return MIX(value, 2);
}

__attribute__((noinline, noclone)) static uint64_t both(uint64_t value)
{
    return plus_two(plus_one(value)) ^ 1;
}

/* Three calls a turn. */
static void *work(void *argument)
{
    struct worker *worker = argument;

    while (!atomic_load_explicit(&stopping, memory_order_relaxed)) {
        for (unsigned long i = 0; i < batch_calls; i += 3) {
            worker->value = both(worker->value);
            worker->calls += 3;
        }
        if (pause_ns)
            nanosleep(&(struct timespec){.tv_nsec = (long)pause_ns}, NULL);
    }
    return NULL;
}

/* The same without a call: what work must have computed. */
static int is_right(const struct worker *worker)
{
    uint64_t value = 0;

    for (unsigned long i = 0; i < worker->calls; i += 3) {
        value = MIX(value, 1);
        value = MIX(value, 2);
        value ^= 1;
    }
    return value == worker->value;
}

static void on_term(int number)
{
    (void)number;
    stopping = true;
}

int main(int argc, char **argv)
{
    unsigned long rate = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
    int threads = argc > 2 ? atoi(argv[2]) : 1;
    struct sigaction term = {.sa_handler = on_term};
    unsigned long calls = 0;

    if (threads < 1 || threads > MAX_THREADS)
        return 2;
    batch_calls = rate ? (rate + BATCHES_PER_SECOND - 1) / BATCHES_PER_SECOND : BATCH_UNLIMITED;
    pause_ns = rate ? 1000000000u / BATCHES_PER_SECOND : 0;
    sigaction(SIGTERM, &term, NULL);
    for (int i = 0; i < threads; i++)
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
            return 1;
    for (unsigned long beat = 0; !stopping; beat++) {
        printf("beat %lu\n", beat);
        fflush(stdout);
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        if (!is_right(&workers[i])) {
            printf("harmed: thread %d computed something else\n", i);
            return 1;
        }
        calls += workers[i].calls;
    }
    printf("unharmed %lu\n", calls);
    return 0;
}
