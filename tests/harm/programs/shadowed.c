/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory of every kind, on two threads: to be built with sanitizers, which reserve terabytes at addresses of
 * their own choice for what they know of it, and end the program where somebody else is there.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "harm.h"

#define THREADS 2
#define MAPPED (1 << 16)

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long total;

CALLED static long leaf(long n)
{
    return n + 1;
}

CALLED static long on_heap(long n)
{
    long *numbers = calloc((size_t)n, sizeof(*numbers)), sum = 0;

    for (long i = 0; numbers && i < n; i++)
        numbers[i] = leaf(i);
    for (long i = 0; numbers && i < n; i++)
        sum += numbers[i];
    free(numbers);
    return sum;
}

CALLED static long on_stack(long n)
{
    long numbers[16] = {0};

    for (long i = 0; i < 16; i++)
        numbers[i] = leaf(n);
    return numbers[n % 16];
}

CALLED static long in_mapping(void)
{
    char *mapped = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    long sum = -1;

    if (mapped != MAP_FAILED) {
        mapped[MAPPED - 1] = 7;
        sum = leaf(mapped[0] + mapped[MAPPED - 1]);
        munmap(mapped, MAPPED);
    }
    return sum;
}

CALLED static void *on_thread(void *unused)
{
    long sum = on_heap(50) + on_stack(3) + in_mapping();

    pthread_mutex_lock(&mutex);
    total += sum;
    pthread_mutex_unlock(&mutex);
    return unused;
}

static long work(void)
{
    pthread_t threads[THREADS];

    total = 0;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, on_thread, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return total;
}

HARM_MAIN(THREADS *(50L * 51 / 2 + 4 + 8))
