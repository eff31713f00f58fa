/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Threads that end in every way: by return, by pthread_exit below ten frames, cancelled at a cancellation
 * point and cancelled at any moment, each with cleanup handlers. The one cancelled at any moment calls
 * nothing while it may be.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "harm.h"

static atomic_long cleaned;
static atomic_int waiting;

CALLED static void clean(void *weight)
{
    cleaned += *(long *)weight;
}

CALLED static void leave_below(int level)
{
    static long weight = 1;

    pthread_cleanup_push(clean, &weight);
    if (level == 0)
        pthread_exit((void *)3L);
    leave_below(level - 1);
    pthread_cleanup_pop(0);
}

CALLED static void wait_below(int level)
{
    static long weight = 1000;

    pthread_cleanup_push(clean, &weight);
    if (level > 0) {
        wait_below(level - 1);
    } else {
        waiting = 1;
        for (;;)
            pause();
    }
    pthread_cleanup_pop(0);
}

CALLED static void spin_below(int level)
{
    static long weight = 1000000;

    pthread_cleanup_push(clean, &weight);
    if (level > 0) {
        spin_below(level - 1);
    } else {
        pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
        waiting = 1;
        for (;;)
            ;
    }
    pthread_cleanup_pop(0);
}

CALLED static void *returning(void *unused)
{
    return (void *)1L;
}

CALLED static void *leaving(void *unused)
{
    leave_below(10);
    return NULL;
}

CALLED static void *paused(void *unused)
{
    wait_below(10);
    return NULL;
}

CALLED static void *spinning(void *unused)
{
    spin_below(10);
    return NULL;
}

CALLED static long run(void *(*body)(void *), int cancel)
{
    pthread_t thread;
    void *value = NULL;

    waiting = 0;
    if (pthread_create(&thread, NULL, body, NULL))
        return -1;
    while (cancel && !waiting)
        usleep(100);
    if (cancel)
        pthread_cancel(thread);
    pthread_join(thread, &value);
    return value == PTHREAD_CANCELED ? 7 : (long)value;
}

static long work(void)
{
    long sum = 0;

    cleaned = 0;
    for (int i = 0; i < 5; i++)
        sum += run(returning, 0) + 10 * run(leaving, 0) + 100 * run(paused, 1) + 1000 * run(spinning, 1);
    return sum + cleaned;
}

/* Five rounds of 1 + 30 + 700 + 7000, and five times 11 frames of each kind. */
HARM_MAIN(5 * 7731L + 55 * 1001001L)
