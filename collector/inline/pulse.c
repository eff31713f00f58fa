/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/inline/pulse.h"

#include <errno.h>
#include <linux/sched/types.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "collector/launch/privileges.h"

#define BEAT_NS 20000000
#define SLICE_NS 100000 /* the shortest that the kernel gives */

struct pulse {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t end;
    struct agent_area **areas;
    size_t count, capacity;
    uint64_t round_ns; /* when the collector has read last */
    unsigned held;
    bool ended;
};

static void beat(struct pulse *pulse)
{
    uint64_t now = clock_ns(CLOCK_MONOTONIC);

    if (pulse->held || now - pulse->round_ns > PULSE_TRUST_NS)
        return;
    for (size_t i = 0; i < pulse->count; i++)
        agent_area_alive(pulse->areas[i], now);
}

/* On a busy machine a thread of an ordinary kind may have to wait for a processor for longer than the targets' patience.
 * This one needs it for a microsecond at a time. */
static void be_scheduled_first(void)
{
    const struct sched_param lowest = {.sched_priority = sched_get_priority_min(SCHED_FIFO)};
    const struct sched_attr soon = {
        .size = sizeof(soon), .sched_policy = SCHED_OTHER, .sched_runtime = SLICE_NS};

    if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &lowest))
        syscall(SYS_sched_setattr, 0, &soon, 0); /* Linux 6.12; else it is a wish that nobody hears */
}

static void *pulse_main(void *context)
{
    struct pulse *pulse = context;

    be_scheduled_first();
    privileges_drop(0, NULL);
    pthread_mutex_lock(&pulse->mutex);
    while (!pulse->ended) {
        struct timespec until;

        beat(pulse);
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += BEAT_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_clockwait(&pulse->end, &pulse->mutex, CLOCK_MONOTONIC, &until);
    }
    pthread_mutex_unlock(&pulse->mutex);
    return NULL;
}

static int start_thread(struct pulse *pulse)
{
    sigset_t all, before;
    int r;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    r = -pthread_create(&pulse->thread, NULL, pulse_main, pulse);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r;
}

int pulse_start(struct pulse **ret_pulse, struct error *err)
{
    struct pulse *pulse = calloc(1, sizeof(*pulse));
    pthread_mutexattr_t inherits;
    int r;

    if (!pulse)
        return error_no_memory(err);
    pthread_mutexattr_init(&inherits);
    pthread_mutexattr_setprotocol(&inherits, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&pulse->mutex, &inherits);
    pthread_mutexattr_destroy(&inherits);
    pthread_cond_init(&pulse->end, NULL);
    pulse->round_ns = clock_ns(CLOCK_MONOTONIC);
    r = start_thread(pulse);
    if (r) {
        free(pulse);
        return error_set(err, r, NULL, "cannot start a thread");
    }
    *ret_pulse = pulse;
    return 0;
}

void pulse_stop(struct pulse *pulse)
{
    if (!pulse)
        return;
    pthread_mutex_lock(&pulse->mutex);
    pulse->ended = true;
    pthread_cond_signal(&pulse->end);
    pthread_mutex_unlock(&pulse->mutex);
    pthread_join(pulse->thread, NULL);
    pthread_cond_destroy(&pulse->end);
    pthread_mutex_destroy(&pulse->mutex);
    free(pulse->areas);
    free(pulse);
}

int pulse_add(struct pulse *pulse, struct agent_area *area)
{
    int r;

    if (!pulse)
        return 0;
    pthread_mutex_lock(&pulse->mutex);
    r = array_reserve(&pulse->areas, &pulse->capacity, pulse->count + 1);
    if (!r) {
        pulse->areas[pulse->count++] = area;
        agent_area_let_wait(area);
    }
    pthread_mutex_unlock(&pulse->mutex);
    return r;
}

void pulse_remove(struct pulse *pulse, const struct agent_area *area)
{
    if (!pulse)
        return;
    pthread_mutex_lock(&pulse->mutex);
    for (size_t i = 0; i < pulse->count; i++)
        if (pulse->areas[i] == area)
            pulse->areas[i--] = pulse->areas[--pulse->count];
    pthread_mutex_unlock(&pulse->mutex);
}

void pulse_round(struct pulse *pulse)
{
    if (!pulse)
        return;
    pthread_mutex_lock(&pulse->mutex);
    pulse->round_ns = clock_ns(CLOCK_MONOTONIC);
    beat(pulse);
    pthread_mutex_unlock(&pulse->mutex);
}

void pulse_hold(struct pulse *pulse)
{
    if (!pulse)
        return;
    pthread_mutex_lock(&pulse->mutex);
    beat(pulse);
    pulse->held++;
    pthread_mutex_unlock(&pulse->mutex);
}

void pulse_resume(struct pulse *pulse)
{
    if (!pulse)
        return;
    pthread_mutex_lock(&pulse->mutex);
    pulse->held--;
    beat(pulse);
    pthread_mutex_unlock(&pulse->mutex);
}
