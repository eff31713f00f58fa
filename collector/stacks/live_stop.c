/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/stacks/live_stop.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/error.h"
#include "collector/process/tracee.h"

#define PATIENCE_NS 200000000ull /* for all threads of one call together */

struct stopped_thread {
    struct tracee tracee;
    bool seized; /* it will stop, or has */
};

struct live_stop {
    pthread_t tracer;
    sem_t asked, answered;
    bool end;
    size_t first; /* of the threads that are to be stopped now */
    struct stopped_thread *threads;
    size_t count, capacity;
};

/* Returns true when there is nothing more to wait for. */
static bool has_stopped(struct stopped_thread *thread)
{
    int r = thread->seized ? tracee_has_stopped(&thread->tracee) : -ESRCH;

    thread->seized = r >= 0;
    return r != 0;
}

static void stop_all(struct live_stop *stop)
{
    uint64_t end = clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS;
    size_t next = stop->first;

    for (size_t i = stop->first; i < stop->count; i++)
        stop->threads[i].seized = tracee_stop(stop->threads[i].tracee.tid, &stop->threads[i].tracee) == 0;
    while (next < stop->count) {
        if (has_stopped(&stop->threads[next]) || clock_ns(CLOCK_MONOTONIC) >= end)
            next++;
        else
            tracee_pause();
    }
}

/* Ends as soon as it is told to: threads that have not stopped yet are let go by the kernel then. */
static void *trace(void *argument)
{
    struct live_stop *stop = argument;

    for (;;) {
        while (sem_wait(&stop->asked))
            ;
        if (stop->end)
            break;
        stop_all(stop);
        sem_post(&stop->answered);
    }
    for (size_t i = 0; i < stop->count; i++)
        tracee_let_go(&stop->threads[i].tracee);
    return NULL;
}

int live_stop_start(struct live_stop **ret_stop, struct error *err)
{
    struct live_stop *stop = calloc(1, sizeof(*stop));
    sigset_t all, before;
    int r;

    if (!stop)
        return error_no_memory(err);
    sem_init(&stop->asked, 0, 0);
    sem_init(&stop->answered, 0, 0);
    sigfillset(&all); /* the signals of this process are for its other threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    r = pthread_create(&stop->tracer, NULL, trace, stop);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (r) {
        free(stop);
        return error_set(err, -r, NULL, "cannot start a thread");
    }
    *ret_stop = stop;
    return 0;
}

static bool was_asked_for(const struct live_stop *stop, size_t count, pid_t tid)
{
    for (size_t i = 0; i < count; i++)
        if (stop->threads[i].tracee.tid == tid)
            return true;
    return false;
}

ssize_t live_stop_threads(struct live_stop *stop, const pid_t *tids, size_t count)
{
    ssize_t stopped = 0;

    if (array_reserve(&stop->threads, &stop->capacity, stop->count + count))
        return -ENOMEM;
    stop->first = stop->count;
    for (size_t i = 0; i < count; i++)
        if (!was_asked_for(stop, stop->first, tids[i]))
            stop->threads[stop->count++] = (struct stopped_thread){.tracee.tid = tids[i]};
    sem_post(&stop->asked);
    while (sem_wait(&stop->answered))
        ;
    for (size_t i = stop->first; i < stop->count; i++)
        stopped += stop->threads[i].tracee.stopped;
    return stopped;
}

void live_stop_end(struct live_stop *stop)
{
    if (!stop)
        return;
    stop->end = true;
    sem_post(&stop->asked);
    pthread_join(stop->tracer, NULL);
    sem_destroy(&stop->asked);
    sem_destroy(&stop->answered);
    free(stop->threads);
    free(stop);
}
