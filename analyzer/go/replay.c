/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>

#include "analyzer/go/replay_state.h"

enum { MAIN_GOROUTINE = 1 };

int go_replay_new(const struct go_replay_options *options, struct go_replay **ret_replay)
{
    struct go_replay *replay = calloc(1, sizeof(*replay));

    if (!replay)
        return -ENOMEM;
    replay->options = *options;
    replay->detail = GO_DETAIL_OPERATIONS;
    *ret_replay = replay;
    return 0;
}

void go_replay_free(struct go_replay *replay)
{
    if (!replay)
        return;
    goroutines_free(replay);
    objects_free(replay);
    timers_free(replay);
    free(replay);
}

struct go_replay_totals go_replay_totals(const struct go_replay *replay)
{
    return replay->totals;
}

/* ------------------------------------------------------------------------------------------ events */

static int create(struct go_replay *replay, struct goroutine *parent, const struct process_event *event)
{
    const struct go_replay_options *options = &replay->options;
    uint32_t function = (uint32_t)event->value;
    struct goroutine *goroutine;
    int r = goroutine_get(replay, event->other, &goroutine);

    if (r < 0)
        return r;
    goroutine->public.created_at = event->site;
    goroutine->public.function = function;
    goroutine->public.created_ns = replay->totals.last_ns;
    goroutine_set_parent(replay, goroutine, parent ? parent->public.goroutine : 0);
    goroutine_set_state(replay, goroutine,
                        replay->detail < GO_DETAIL_SCHEDULE ? GO_STATE_UNKNOWN : GO_STATE_RUNNABLE,
                        GO_WAIT_OTHER);
    if (event->other != MAIN_GOROUTINE && options->is_runtime &&
        options->is_runtime(options->context, function))
        goroutine_set_system(replay, goroutine);
    replay->totals.created++;
    return 0;
}

static int run(struct go_replay *replay, struct goroutine *goroutine, uint32_t tid)
{
    bool stopped = goroutine->public.state != GO_STATE_RUNNING;
    int r = goroutine_set_running(replay, goroutine, tid);

    if (r == 0 && stopped && replay->detail < GO_DETAIL_WAITING) /* what it does next will not be seen */
        return actions_end(replay, goroutine, false);
    return r == 0 && stopped ? actions_resume(replay, goroutine) : r;
}

static enum go_wait wait_of(const struct go_replay *replay, const struct goroutine *goroutine, int64_t reason)
{
    const struct go_replay_options *options = &replay->options;

    if (options->wait_reasons)
        return reason >= 0 && (uint64_t)reason < options->wait_reason_count
                   ? go_wait_of(options->wait_reasons[reason])
                   : GO_WAIT_OTHER;
    return actions_wait(goroutine);
}

static int block(struct go_replay *replay, struct goroutine *goroutine, const struct process_event *event)
{
    enum go_wait wait = wait_of(replay, goroutine, event->value);
    int r = actions_block(replay, goroutine, wait);

    if (r < 0)
        return r;
    goroutine_set_state(replay, goroutine, GO_STATE_BLOCKED, wait);
    goroutine->public.wait_reason = event->value;
    if (wait == GO_WAIT_SYSTEM && !goroutine->public.function &&
        goroutine->public.goroutine != MAIN_GOROUTINE)
        goroutine_set_system(replay, goroutine);
    return 0;
}

static int wake(struct go_replay *replay, struct goroutine *waker, const struct process_event *event)
{
    struct goroutine *woken;
    int r = goroutine_get(replay, event->other, &woken);

    if (r < 0)
        return r;
    if (waker)
        actions_wake(waker, woken);
    if (woken->public.state == GO_STATE_BLOCKED || woken->public.state == GO_STATE_UNKNOWN)
        goroutine_set_state(replay, woken, GO_STATE_RUNNABLE, GO_WAIT_OTHER);
    return 0;
}

static int end(struct go_replay *replay, struct goroutine *goroutine)
{
    int r = actions_end(replay, goroutine, true);

    if (r < 0)
        return r;
    actions_release(goroutine);
    goroutine_set_state(replay, goroutine, GO_STATE_ENDED, GO_WAIT_OTHER);
    replay->totals.ended++;
    if (replay->options.forget_ended)
        goroutine_forget(replay, goroutine);
    return 0;
}

static void lose(struct go_replay *replay, uint64_t count)
{
    struct goroutine *goroutine, *next;

    replay->totals.lost += count;
    HASH_ITER (hh, replay->goroutines, goroutine, next)
        if (goroutine->public.state != GO_STATE_ENDED)
            goroutine_set_state(replay, goroutine, GO_STATE_UNKNOWN, goroutine->public.wait);
    objects_lost(replay);
}

/* Operations are not seen any more: what is done to objects is not known, and only goroutines that wait are
 * known to be in one. */
static int reduce(struct go_replay *replay, const struct process_event *event)
{
    struct goroutine *goroutine, *next;
    enum go_detail before = replay->detail;
    int r = 0;

    replay->detail = (enum go_detail)event->value;
    if (replay->detail < GO_DETAIL_SCHEDULE)
        lose(replay, 0);
    if (replay->detail >= before)
        return 0;
    objects_lost(replay);
    HASH_ITER (hh, replay->goroutines, goroutine, next)
        if (r >= 0 && goroutine->public.state != GO_STATE_BLOCKED)
            r = actions_end(replay, goroutine, false);
    return r < 0 ? r : 0;
}

/* What the event says of the process, not of the goroutine that it is of. */
static int note(struct go_replay *replay, const struct process_event *event)
{
    struct go_replay_totals *totals = &replay->totals;

    switch (event->kind) {
    case GO_EVENT_TIMER:
        return timer_set(replay, event);
    case GO_EVENT_TIMER_STOP:
        timer_stop(replay, event->object);
        return 0;
    case GO_EVENT_TIMER_RUN:
        timer_run(replay, event->object, event->tid);
        return 0;
    case GO_EVENT_CASE:
        timer_channel(replay, event->object);
        return 0;
    case GO_EVENT_SIGNALS:
        return object_signals(replay, event->object);
    case GO_EVENT_FATAL:
        totals->has_fatal = true;
        totals->fatal_goroutine = event->goroutine;
        totals->fatal = (enum go_fatal)event->value;
        return 0;
    case GO_EVENT_EXIT:
        totals->exited = true;
        replay->exit_ns = totals->last_ns;
        totals->exit_goroutine = event->goroutine;
        totals->exit_status = event->value;
        return 0;
    case GO_EVENT_LOST:
        lose(replay, (uint64_t)event->value);
        return 0;
    case GO_EVENT_DETAIL:
        return reduce(replay, event);
    default:
        return 0;
    }
}

/* What a goroutine does; by doing it, it shows that it runs. */
static int act(struct go_replay *replay, struct goroutine *goroutine, const struct process_event *event)
{
    int r = run(replay, goroutine, event->tid);

    if (r < 0)
        return r;
    switch (event->kind) {
    case GO_EVENT_CREATE:
        return create(replay, goroutine, event);
    case GO_EVENT_END:
        return end(replay, goroutine);
    case GO_EVENT_OPERATE:
        return actions_begin(replay, goroutine, event);
    case GO_EVENT_CASE:
        return event->flags & GO_FLAG_TIMER ? note(replay, event)
                                            : actions_add_case(replay, goroutine, event);
    case GO_EVENT_RESULT:
        return actions_result(replay, goroutine, event->value);
    case GO_EVENT_BLOCK:
        return block(replay, goroutine, event);
    case GO_EVENT_WAKE:
        return wake(replay, goroutine, event);
    case GO_EVENT_YIELD:
        goroutine_set_state(replay, goroutine, GO_STATE_RUNNABLE, GO_WAIT_OTHER);
        return 0;
    case GO_EVENT_TEST:
        goroutine->public.test = (uint32_t)event->value;
        return 0;
    case GO_EVENT_PANIC:
        return actions_panic(replay, goroutine);
    default:
        return note(replay, event);
    }
}

/* Whether an event is its goroutine's own doing: the runtime gives up, or ends the process, on a thread whose
 * goroutine may have stopped. */
static bool is_act(unsigned kind)
{
    return kind != GO_EVENT_LOST && kind != GO_EVENT_FATAL && kind != GO_EVENT_EXIT;
}

int go_replay_event(struct go_replay *replay, const struct process_event *event)
{
    struct goroutine *goroutine;
    int r;

    replay->totals.events++;
    if (event->ns > replay->totals.last_ns)
        replay->totals.last_ns = event->ns;
    timers_settle(replay, event->tid);
    if (event->goroutine && is_act(event->kind)) {
        r = goroutine_get(replay, event->goroutine, &goroutine);
        return r < 0 ? r : act(replay, goroutine, event);
    }
    switch (event->kind) {
    case GO_EVENT_CREATE:
        return create(replay, NULL, event);
    case GO_EVENT_WAKE:
        return wake(replay, NULL, event);
    default:
        return note(replay, event);
    }
}

static int report(void *context, const struct go_goroutine *goroutine)
{
    const struct go_replay *replay = context;

    return actions_report(replay, goroutine_find(replay, goroutine->goroutine));
}

int go_replay_end(struct go_replay *replay)
{
    return replay->options.on_action ? go_replay_each(replay, report, replay) : 0;
}
