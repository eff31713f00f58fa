/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * usage: forty [--expect] [ROUNDS]
 *
 * Eight threads call forty functions a known number of times. --expect prints the numbers and runs nothing:
 * "P.T NAME COUNT" a line, P always 0, T the order of thread creation, 0 the main thread.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 8, FUNCTIONS = 40 };

// clang-format off
#define EACH_UNIT(X, TENS)                                                                                   \
    X(TENS##0) X(TENS##1) X(TENS##2) X(TENS##3) X(TENS##4) X(TENS##5) X(TENS##6) X(TENS##7) X(TENS##8) X(TENS##9)
#define EACH_FUNCTION(X) EACH_UNIT(X, f0) EACH_UNIT(X, f1) EACH_UNIT(X, f2) EACH_UNIT(X, f3)
// clang-format on

/* The name takes part in the result, so that no two bodies are equal. */
#define DEFINE(NAME) \
    __attribute__((noinline, noclone)) uint64_t NAME(uint64_t value); \
    uint64_t NAME(uint64_t value) \
    { \
        static const char name[] = #NAME; \
\
        return value * 31 + (uint64_t)name[1] * 10 + (uint64_t)name[2]; \
    }
EACH_FUNCTION(DEFINE)

#define ADDRESS(NAME) NAME,
static uint64_t (*const functions[FUNCTIONS])(uint64_t) = {EACH_FUNCTION(ADDRESS)};

static unsigned int rounds = 1;

/* How often thread `thread` (1..8) calls function `function` in a round. */
static inline __attribute__((always_inline)) unsigned int calls_of(unsigned int thread, unsigned int function)
{
    return (thread * 13 + function * 7) % 41;
}

static void *work(void *argument)
{
    unsigned int thread = (unsigned int)(uintptr_t)argument;
    uint64_t value = thread;

    for (unsigned int round = 0; round < rounds; round++)
        for (unsigned int turn = 0; turn < 41;
             turn++) /* one call of each that has calls left: they interleave */
            for (unsigned int f = 0; f < FUNCTIONS; f++)
                if (turn < calls_of(thread, f))
                    value = functions[f](value);
    return (void *)(uintptr_t)value;
}

static void print_expected(void)
{
    printf("0.0 main 1\n");
    for (unsigned int thread = 1; thread <= THREADS; thread++) {
        printf("0.%u work 1\n", thread);
        for (unsigned int f = 0; f < FUNCTIONS; f++)
            if (calls_of(thread, f))
                printf("0.%u f%02u %u\n", thread, f, rounds * calls_of(thread, f));
    }
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    int expect = argc > 1 && !strcmp(argv[1], "--expect");
    uint64_t sum = 0;

    if (argc > 1 + expect)
        rounds = (unsigned int)strtoul(argv[1 + expect], NULL, 10);
    if (expect) {
        print_expected();
        return 0;
    }
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)(i + 1)))
            return 1;
    for (int i = 0; i < THREADS; i++) {
        void *value;

        pthread_join(threads[i], &value);
        sum ^= (uint64_t)(uintptr_t)value;
    }
    printf("forty %016llx\n", (unsigned long long)sum);
    return 0;
}
