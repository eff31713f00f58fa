/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>

#include "analyzer/go/replay_state.h"

enum { SWEEP_TIMERS = 1024, IDLE_PERIODS = 2 };

static void remove_timer(struct go_replay *replay, struct timer *timer)
{
    if (replay->last_timer == timer)
        replay->last_timer = NULL;
    HASH_DEL(replay->timers, timer);
    free(timer);
}

void timers_free(struct go_replay *replay)
{
    struct timer *timer, *next;

    HASH_ITER (hh, replay->timers, timer, next)
        remove_timer(replay, timer);
}

/* Takes out what has been due once and will not be again. */
static void sweep(struct go_replay *replay)
{
    struct timer *timer, *next;

    if (HASH_COUNT(replay->timers) < replay->sweep_timers_at)
        return;
    HASH_ITER (hh, replay->timers, timer, next)
        if (!timer->period_ns && timer->due_ns <= replay->totals.last_ns)
            remove_timer(replay, timer);
    replay->sweep_timers_at = (size_t)HASH_COUNT(replay->timers) * 2 + SWEEP_TIMERS;
}

void timer_stop(struct go_replay *replay, uint64_t key)
{
    struct timer *timer;

    replay->last_timer = NULL;
    HASH_FIND(hh, replay->timers, &key, sizeof(key), timer);
    if (timer)
        remove_timer(replay, timer);
}

int timer_set(struct go_replay *replay, const struct go_event *event)
{
    struct timer *timer;
    uint64_t channel = 0;

    HASH_FIND(hh, replay->timers, &event->object, sizeof(event->object), timer);
    if (timer)
        channel = timer->channel; /* it is set anew, for the same */
    timer_stop(replay, event->object);
    if (replay->options.ignores_timer && replay->options.ignores_timer(replay->options.context, event->site))
        return 0;
    sweep(replay);
    timer = calloc(1, sizeof(*timer));
    if (!timer)
        return -ENOMEM;
    timer->timer = event->object;
    timer->due_ns = (uint64_t)event->value;
    timer->period_ns = event->other;
    timer->channel = channel;
    timer->site = event->site;
    timer->runs_function = event->flags & GO_FLAG_TIMER;
    HASH_ADD(hh, replay->timers, timer, sizeof(timer->timer), timer);
    if (!timer->hh.tbl) {
        free(timer);
        return -ENOMEM;
    }
    replay->last_timer = timer;
    return 0;
}

void timer_channel(struct go_replay *replay, uint64_t channel)
{
    if (replay->last_timer)
        replay->last_timer->channel = channel;
}

/* When it is due after `now_ns`, 0: never, or nobody listens to it. */
static uint64_t due_after(const struct timer *timer, uint64_t now_ns, uint64_t effect_ns)
{
    uint64_t due = timer->due_ns, since = timer->due_ns;

    if (due > now_ns)
        return due;
    if (!timer->period_ns)
        return 0;
    due += ((now_ns - due) / timer->period_ns + 1) * timer->period_ns;
    if (effect_ns > since)
        since = effect_ns;
    return due - since <= IDLE_PERIODS * timer->period_ns ? due : 0;
}

int go_replay_each_timer(struct go_replay *replay, uint64_t now_ns,
                         int (*visit)(void *context, const struct go_timer *), void *context)
{
    struct timer *timer, *next;
    int r = 0;

    HASH_ITER (hh, replay->timers, timer, next) {
        const struct go_timer pending = {.due_ns = due_after(timer, now_ns, replay->last_effect_ns),
                                         .channel = timer->channel,
                                         .site = timer->site,
                                         .runs_function = timer->runs_function};

        if (!r && pending.due_ns)
            r = visit(context, &pending);
    }
    return r;
}

uint64_t go_replay_next_timer(struct go_replay *replay, uint64_t now_ns)
{
    struct timer *timer, *next;
    uint64_t first = 0;

    HASH_ITER (hh, replay->timers, timer, next) {
        uint64_t due = due_after(timer, now_ns, replay->last_effect_ns);

        if (due && (!first || due < first))
            first = due;
    }
    return first;
}
