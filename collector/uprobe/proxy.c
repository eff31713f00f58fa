/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/uprobe/proxy.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define STACK_BYTES (64u << 10)

struct order {
    int (*work)(void *context);
    void *context;
    volatile int answer;
};

/* Out of the way of what is sent to the collector's group, and of its handlers. */
static int proxy_main(void *context)
{
    const struct sched_param first = {.sched_priority = 1};
    struct order *order = context;

    setsid();
    prctl(PR_SET_NAME, "tracectl-proxy");
    sched_setscheduler(0, SCHED_FIFO, &first); /* where it may not, it takes its turn */
    order->answer = order->work(order->context);
    return 0;
}

int proxy_do(int (*work)(void *context), void *context)
{
    struct order order = {.work = work, .context = context, .answer = -EINTR}; /* -EINTR: it was killed */
    char *stack =
        mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    sigset_t all, before;
    int pid;

    if (stack == MAP_FAILED)
        return work(context);
    sigfillset(&all); /* no handler of ours runs in it */
    pthread_sigmask(SIG_BLOCK, &all, &before);
    /* It signals no end: a wait for commands is not to find it. */
    pid = clone(proxy_main, stack + STACK_BYTES, CLONE_FILES | CLONE_VM, &order);
    while (pid > 0 && waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
        ;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    munmap(stack, STACK_BYTES);
    return pid > 0 ? order.answer : work(context);
}
