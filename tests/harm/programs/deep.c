/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * 10,000 levels on the main thread, 1,000 on a second one, by one function; 3,000 and 1,000 by three that
 * call each other.
 */
#include <pthread.h>

#include "harm.h"

CALLED static long descend(long n)
{
    return n == 0 ? 0 : descend(n - 1) + 1;
}

CALLED static long first(long n);

CALLED static long third(long n)
{
    return n == 0 ? 0 : first(n - 1) + 1;
}

CALLED static long second(long n)
{
    return n == 0 ? 0 : third(n - 1) + 1;
}

CALLED static long first(long n)
{
    return n == 0 ? 0 : second(n - 1) + 1;
}

CALLED static void *on_thread(void *n)
{
    return (void *)(descend((long)n) + first((long)n));
}

static long work(void)
{
    pthread_t thread;
    void *other = NULL;

    if (!pthread_create(&thread, NULL, on_thread, (void *)1000L))
        pthread_join(thread, &other);
    return descend(10000) + first(3000) + (long)other;
}

HARM_MAIN(10000L + 3000 + 2 * 1000)
