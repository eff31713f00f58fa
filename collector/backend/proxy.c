/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/backend/proxy.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Out of the way of what is sent to the collector's group, and of its handlers. */
static void proxy_main(int (*work)(void *context), void *context, volatile int *answer)
{
    const struct sched_param first = {.sched_priority = 1};
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    setsid();
    prctl(PR_SET_NAME, "tracectl-proxy");
    sched_setscheduler(0, SCHED_FIFO, &first); /* where it may not, it takes its turn */
    *answer = work(context);
    _exit(0);
}

int proxy_do(int (*work)(void *context), void *context)
{
    volatile int *answer =
        mmap(NULL, sizeof(*answer), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    sigset_t all, before;
    long pid;
    int r;

    if (answer == MAP_FAILED)
        return work(context);
    *answer = -EINTR; /* it was killed itself */
    sigfillset(&all); /* no handler of ours runs in it */
    pthread_sigmask(SIG_BLOCK, &all, &before);
    /* It tells nobody when it ends: who waits for commands is not to meet it. */
    pid = syscall(SYS_clone, CLONE_FILES, 0, 0, 0, 0);
    if (!pid)
        proxy_main(work, context, answer);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    while (pid > 0 && waitpid((pid_t)pid, NULL, __WALL) < 0 && errno == EINTR)
        ;
    r = pid > 0 ? *answer : work(context);
    munmap((void *)answer, sizeof(*answer));
    return r;
}
