/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Threads that come and go: named, created by other threads, ended by pthread_exit inside nested calls,
 * detached ones included. Prints "NAME COUNT" of its functions, one a line, at the end.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

enum { WAVES = 5, PER_WAVE = 6, TURNS = 20 };

static atomic_int leaves, branches, quits, bodies, starts;

__attribute__((noinline, noclone)) static void leaf(void)
{
    leaves++;
}

__attribute__((noinline, noclone)) static void branch(int turns)
{
    branches++;
    for (int i = 0; i < turns; i++)
        leaf();
}

__attribute__((noinline, noclone)) static void quit(int levels)
{
    quits++;
    leaf();
    if (levels == 0)
        pthread_exit(NULL);
    quit(levels - 1);
    leaf(); /* never reached */
}

static void *body(void *argument)
{
    uintptr_t number = (uintptr_t)argument;
    char name[16];

    bodies++;
    snprintf(name, sizeof(name), "worker-%d", (int)number);
    pthread_setname_np(pthread_self(), name);
    branch(TURNS);
    if (number % 2)
        quit(3);
    return NULL;
}

/* Starts a wave of threads from a thread of its own, and waits for them. */
static void *start(void *argument)
{
    pthread_t threads[PER_WAVE];

    starts++;
    for (uintptr_t i = 0; i < PER_WAVE; i++)
        if (pthread_create(&threads[i], NULL, body, (void *)((uintptr_t)argument * PER_WAVE + i)))
            return (void *)1;
    for (int i = 0; i < PER_WAVE; i++)
        pthread_join(threads[i], NULL);
    return NULL;
}

int main(void)
{
    for (uintptr_t wave = 0; wave < WAVES; wave++) {
        pthread_t thread;
        void *failed;

        if (pthread_create(&thread, NULL, start, (void *)wave))
            return 1;
        pthread_join(thread, &failed);
        if (failed)
            return 1;
    }
    printf("leaf %d\nbranch %d\nquit %d\nbody %d\nstart %d\nmain 1\n", leaves, branches, quits, bodies,
           starts);
    return 0;
}
