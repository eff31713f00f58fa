/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waits in every system call that a stop and continue, or a signal, ends early (signal(7)): epoll_wait,
 * nanosleep, poll, sem_timedwait, each on its own thread, until SIGTERM. Prints how often one did, and how
 * often it was called.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define CALLED __attribute__((noipa))

static atomic_long interrupted, waited;
static atomic_int stop;
static int events;

CALLED static int by_epoll(void)
{
    struct epoll_event event;

    return epoll_wait(events, &event, 1, 200);
}

CALLED static int by_sleep(void)
{
    const struct timespec time = {0, 200000000};

    return nanosleep(&time, NULL);
}

CALLED static int by_poll(void)
{
    return poll(NULL, 0, 200);
}

CALLED static int by_semaphore(void)
{
    struct timespec until;
    sem_t never;

    sem_init(&never, 0, 0);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    return sem_timedwait(&never, &until);
}

CALLED static void *waiter(void *how)
{
    int (*wait)(void) = *(int (**)(void))how;

    while (!stop) {
        errno = 0;
        if (wait() < 0 && errno == EINTR)
            interrupted++;
        waited++;
    }
    return NULL;
}

int main(void)
{
    static int (*ways[])(void) = {by_epoll, by_sleep, by_poll, by_semaphore};
    pthread_t threads[4];
    sigset_t set;
    int number;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    events = epoll_create1(EPOLL_CLOEXEC);
    for (int i = 0; i < 4; i++) {
        if (pthread_create(&threads[i], NULL, waiter, &ways[i]))
            return 1;
    }
    printf("ready\n");
    fflush(stdout);
    sigwait(&set, &number);
    stop = 1;
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    printf("%s: %ld of %s waits were interrupted\n", interrupted ? "HARMED" : "unharmed", (long)interrupted,
           waited > 4 ? "many" : "few");
    return interrupted || waited <= 4;
}
