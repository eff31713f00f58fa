/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Signal handlers on an alternate stack that lies above the stack of the thread that they interrupt: whoever
 * takes frames below the stack pointer for dead takes those of the interrupted functions for dead.
 */
#include <pthread.h>
#include <sys/mman.h>

#include "harm.h"

enum { SIZE = 65536, STACK = 1 << 20, ROUNDS = 50 };
enum { GAP = 64 << 20 }; /* far enough not to be taken for the thread's stack, which begins the region */

static char *region, *above;
static volatile long handled;

CALLED static void count_signal(int number)
{
    handled = handled + number;
}

CALLED static void on_signal(int number)
{
    count_signal(1);
}

CALLED static long interrupted_below(int level)
{
    if (level == 0)
        return raise(SIGUSR1);
    return interrupted_below(level - 1) + 1;
}

CALLED static void *on_thread(void *unused)
{
    stack_t alternate = {.ss_sp = above, .ss_size = SIZE};
    long sum = 0;
    char here;

    if (sigaltstack(&alternate, NULL) || above < &here)
        return NULL;
    for (int i = 0; i < ROUNDS; i++)
        sum += interrupted_below(i % 5);
    return (void *)sum;
}

static long work(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    pthread_attr_t attributes;
    pthread_t thread;
    void *sum = NULL;

    handled = 0;
    region =
        mmap(NULL, GAP + SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (region == MAP_FAILED || sigaction(SIGUSR1, &action, NULL))
        return -1;
    above = region + GAP;
    pthread_attr_init(&attributes);
    if (!pthread_attr_setstack(&attributes, region, STACK) &&
        !pthread_create(&thread, &attributes, on_thread, NULL))
        pthread_join(thread, &sum);
    pthread_attr_destroy(&attributes);
    munmap(region, GAP + SIZE);
    return (long)sum + handled;
}

HARM_MAIN(2 * ROUNDS + ROUNDS)
