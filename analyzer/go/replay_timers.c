/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>

#include "analyzer/go/replay_state.h"

enum { SWEEP_TIMERS = 65536 };

static void unlink_running(struct go_replay *replay, const struct timer *timer)
{
    struct timer **link = &replay->running;

    while (*link && *link != timer)
        link = &(*link)->next_running;
    if (*link)
        *link = timer->next_running;
}

static void remove_timer(struct go_replay *replay, struct timer *timer)
{
    if (replay->last_timer == timer)
        replay->last_timer = NULL;
    unlink_running(replay, timer);
    HASH_DEL(replay->timers, timer);
    free(timer);
}

void timers_free(struct go_replay *replay)
{
    struct timer *timer, *next;

    HASH_ITER (hh, replay->timers, timer, next)
        remove_timer(replay, timer);
}

/* Whether it may still do something: it should not have run so long ago that that must have been missed. */
static bool is_pending(const struct go_replay *replay, const struct timer *timer)
{
    return timer->pending && (timer->period_ns || timer->due_ns + GO_TIMER_LATE_NS >= replay->totals.last_ns);
}

/* Others are remembered, since they may be set again without a word about what they do; so are all of the
 * memory that the program has for timers, unless that is very much. */
static void sweep(struct go_replay *replay)
{
    struct timer *timer, *next;

    if (HASH_COUNT(replay->timers) < replay->sweep_timers_at)
        return;
    HASH_ITER (hh, replay->timers, timer, next)
        if (replay->sweep_timers_at && !is_pending(replay, timer))
            remove_timer(replay, timer);
    replay->sweep_timers_at = (size_t)HASH_COUNT(replay->timers) * 2 + SWEEP_TIMERS;
}

static int timer_get(struct go_replay *replay, uint64_t key, struct timer **ret_timer)
{
    struct timer *timer;

    HASH_FIND(hh, replay->timers, &key, sizeof(key), timer);
    if (!timer) {
        sweep(replay);
        timer = calloc(1, sizeof(*timer));
        if (!timer)
            return -ENOMEM;
        timer->timer = key;
        HASH_ADD(hh, replay->timers, timer, sizeof(timer->timer), timer);
        if (!timer->hh.tbl) {
            free(timer);
            return -ENOMEM;
        }
    }
    *ret_timer = timer;
    return 0;
}

int timer_set(struct go_replay *replay, const struct process_event *event)
{
    struct timer *timer;
    int r;

    timer_stop(replay, event->object);
    if (replay->options.ignores_timer && replay->options.ignores_timer(replay->options.context, event->site))
        return 0;
    r = timer_get(replay, event->object, &timer);
    if (r < 0)
        return r;
    timer->pending = true;
    timer->due_ns = (uint64_t)event->value;
    timer->period_ns = event->other;
    timer->set_ns = replay->totals.last_ns;
    timer->ran_ns = 0;
    timer->site = event->site;
    timer->runs_function = event->flags & GO_FLAG_TIMER;
    if (timer->runs_function)
        timer->channel = 0;
    replay->last_timer = timer;
    return 0;
}

void timer_stop(struct go_replay *replay, uint64_t key)
{
    struct timer *timer;

    replay->last_timer = NULL;
    HASH_FIND(hh, replay->timers, &key, sizeof(key), timer);
    if (!timer)
        return;
    timer->pending = false;
    unlink_running(replay, timer);
}

void timer_channel(struct go_replay *replay, uint64_t channel)
{
    if (replay->last_timer)
        replay->last_timer->channel = channel;
}

void timer_run(struct go_replay *replay, uint64_t key, uint32_t tid)
{
    struct timer *timer;

    HASH_FIND(hh, replay->timers, &key, sizeof(key), timer);
    if (!timer || !timer->pending || timer->due_ns > replay->totals.last_ns)
        return; /* what runs is how it was set before: it is being set anew at this moment */
    timer->ran_ns = replay->totals.last_ns;
    if (timer->period_ns) {
        timer->due_ns += ((timer->ran_ns - timer->due_ns) / timer->period_ns + 1) * timer->period_ns;
        return;
    }
    unlink_running(replay, timer);
    timer->tid = tid;
    timer->next_running = replay->running;
    replay->running = timer;
}

/* Which timers that run have had their effect: those of a thread, or those that a receive may have got
 * something from. */
struct effect {
    uint32_t tid; /* 0: a receive */
    uint64_t channel, since_ns;
};

static bool has_had(const struct timer *timer, const struct effect *effect)
{
    return effect->tid ? timer->tid == effect->tid
                       : timer->channel == effect->channel && timer->set_ns < effect->since_ns;
}

static void settle(struct go_replay *replay, const struct effect *effect)
{
    struct timer **link = &replay->running;

    while (*link)
        if (has_had(*link, effect)) {
            (*link)->pending = false;
            *link = (*link)->next_running;
        } else {
            link = &(*link)->next_running;
        }
}

void timers_settle(struct go_replay *replay, uint32_t tid)
{
    const struct effect effect = {.tid = tid};

    if (tid)
        settle(replay, &effect);
}

void timers_received(struct go_replay *replay, uint64_t channel, uint64_t since_ns)
{
    const struct effect effect = {.channel = channel, .since_ns = since_ns};

    if (channel)
        settle(replay, &effect);
}

/* ------------------------------------------------------------------------------------------ asking */

int go_replay_each_timer(const struct go_replay *replay, int (*visit)(void *context, const struct go_timer *),
                         void *context)
{
    const struct timer *timer, *next;
    int r = 0;

    HASH_ITER (hh, replay->timers, timer, next) {
        const struct go_timer pending = {.due_ns = timer->due_ns,
                                         .channel = timer->channel,
                                         .site = timer->site,
                                         .runs_function = timer->runs_function};

        if (!r && is_pending(replay, timer))
            r = visit(context, &pending);
    }
    return r;
}

static bool waits_at(const struct go_goroutine *goroutine, uint64_t channel)
{
    for (size_t i = 0; i < goroutine->action_count; i++) {
        const struct go_action *action = &goroutine->actions[i];

        if (action->object == channel)
            return true;
        for (size_t j = 0; j < action->case_count; j++)
            if (action->cases[j].object == channel)
                return true;
    }
    return false;
}

/* Whether somebody continues when the timer is due, as far as that can be known. */
static bool is_awaited(const struct go_replay *replay, const struct timer *timer)
{
    const struct goroutine *goroutine, *next;

    if (!timer->channel)
        return true;
    HASH_ITER (hh, replay->goroutines, goroutine, next)
        if (goroutine->public.state == GO_STATE_BLOCKED && waits_at(&goroutine->public, timer->channel))
            return true;
    return false;
}

uint64_t go_replay_next_timer(const struct go_replay *replay)
{
    const struct timer *timer, *next;
    uint64_t first = 0;

    HASH_ITER (hh, replay->timers, timer, next) {
        bool repeated =
            replay->exit_ns && (timer->set_ns > replay->exit_ns || timer->ran_ns > replay->exit_ns);

        if (!repeated && is_pending(replay, timer) && (!first || timer->due_ns < first) &&
            is_awaited(replay, timer))
            first = timer->due_ns;
    }
    return first;
}
