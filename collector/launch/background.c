/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/launch/background.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "collector/launch/privileges.h"

#define STEP_NS 4000000
#define PART_MOST 0.5   /* of a processor: beside one thread it has that in any case */
#define PART_LEAST 0.03 /* the recording waits for it */

struct background {
    pid_t worker;
    clockid_t clock; /* what the worker has used */
    double part;     /* of a processor, that it may have of busy ones */
    uint64_t begun_ns, used_ns;
    bool idle, ended;
    pthread_t watch;
    pthread_mutex_t mutex;
    pthread_cond_t end;
};

static void set_idle(struct background *background, bool idle)
{
    const struct sched_param none = {0};

    if (!sched_setscheduler(background->worker, idle ? SCHED_IDLE : SCHED_OTHER, &none))
        background->idle = idle;
}

static bool is_behind(const struct background *background)
{
    double elapsed = (double)(clock_ns(CLOCK_MONOTONIC) - background->begun_ns);

    return (double)(clock_ns(background->clock) - background->used_ns) < background->part * elapsed;
}

/* What a thread does in the kernel may take long, so another one sees to it. */
static void *watch(void *context)
{
    struct background *background = context;

    pthread_mutex_lock(&background->mutex);
    while (!background->ended) {
        struct timespec until;

        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += STEP_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (!pthread_cond_clockwait(&background->end, &background->mutex, CLOCK_MONOTONIC, &until))
            continue;
        if (is_behind(background) == background->idle)
            set_idle(background, !background->idle);
    }
    pthread_mutex_unlock(&background->mutex);
    return NULL;
}

static bool start_watch(struct background *background)
{
    sigset_t all, before;
    int r;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    r = pthread_create(&background->watch, NULL, watch, background);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return !r;
}

struct background *background_begin(double share)
{
    struct background *background;

    if (!(share > 0 && share < PART_MOST) || sched_getscheduler(0) != SCHED_OTHER ||
        privileges_missing(PRIVILEGE_SCHEDULE))
        return NULL;
    background = calloc(1, sizeof(*background));
    if (!background)
        return NULL;
    *background = (struct background){
        .worker = gettid(),
        .part = share > PART_LEAST ? share : PART_LEAST,
        .begun_ns = clock_ns(CLOCK_MONOTONIC),
        .mutex = PTHREAD_MUTEX_INITIALIZER,
        .end = PTHREAD_COND_INITIALIZER,
    };
    if (!pthread_getcpuclockid(pthread_self(), &background->clock))
        background->used_ns = clock_ns(background->clock);
    if (!background->used_ns || !start_watch(background)) {
        free(background);
        return NULL;
    }
    pthread_mutex_lock(&background->mutex);
    set_idle(background, true);
    pthread_mutex_unlock(&background->mutex);
    return background;
}

void background_end(struct background *background)
{
    if (!background)
        return;
    pthread_mutex_lock(&background->mutex);
    background->ended = true;
    pthread_cond_signal(&background->end);
    pthread_mutex_unlock(&background->mutex);
    pthread_join(background->watch, NULL);
    if (background->idle)
        set_idle(background, false);
    free(background);
}
