/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>

#include "analyzer/go/replay_state.h"

/* Of ended goroutines in a row that only descendants keep, so many stay. */
enum { ENDED_ANCESTORS = 32 };

struct goroutine *goroutine_find(const struct go_replay *replay, uint64_t key)
{
    struct goroutine *goroutine;

    HASH_FIND(hh, replay->goroutines, &key, sizeof(key), goroutine);
    return goroutine;
}

/* ------------------------------------------------------------------------------------------ states */

/* Counts the goroutine in (1) or out (-1) of the totals. */
static void account(struct go_replay *replay, const struct go_goroutine *goroutine, int64_t sign)
{
    struct go_replay_totals *totals = &replay->totals;
    bool blocked = goroutine->state == GO_STATE_BLOCKED;

    if (goroutine->system || goroutine->state == GO_STATE_ENDED)
        return;
    totals->application += (uint64_t)sign;
    if (!blocked)
        totals->runnable += (uint64_t)sign;
    else if (!go_wait_on_others(goroutine->wait))
        totals->outside += (uint64_t)sign;
}

static void update_idle(struct go_replay *replay)
{
    struct go_replay_totals *totals = &replay->totals;

    if (totals->runnable || !totals->application)
        totals->idle_since_ns = 0;
    else if (!totals->idle_since_ns)
        totals->idle_since_ns = totals->last_ns;
}

void goroutine_set_state(struct go_replay *replay, struct goroutine *goroutine, enum go_state state,
                         enum go_wait wait)
{
    account(replay, &goroutine->public, -1);
    goroutine->public.state = state;
    goroutine->public.wait = wait;
    goroutine->public.since_ns = replay->totals.last_ns;
    account(replay, &goroutine->public, 1);
    update_idle(replay);
}

void goroutine_set_system(struct go_replay *replay, struct goroutine *goroutine)
{
    account(replay, &goroutine->public, -1);
    goroutine->public.system = true;
    update_idle(replay);
}

/* Who runs on the thread, from now on; whoever did before does not. */
static int take_thread(struct go_replay *replay, struct goroutine *goroutine, uint32_t tid)
{
    struct goroutine *before;
    struct runner *runner;

    HASH_FIND(hh, replay->runners, &tid, sizeof(tid), runner);
    if (!runner) {
        runner = calloc(1, sizeof(*runner));
        if (!runner)
            return -ENOMEM;
        runner->tid = tid;
        HASH_ADD(hh, replay->runners, tid, sizeof(runner->tid), runner);
        if (!runner->hh.tbl) {
            free(runner);
            return -ENOMEM;
        }
    }
    before = goroutine_find(replay, runner->goroutine);
    if (before && before != goroutine && before->tid == tid && before->public.state == GO_STATE_RUNNING)
        goroutine_set_state(replay, before, GO_STATE_RUNNABLE, GO_WAIT_OTHER);
    runner->goroutine = goroutine->public.goroutine;
    return 0;
}

int goroutine_set_running(struct go_replay *replay, struct goroutine *goroutine, uint32_t tid)
{
    if (goroutine->public.state == GO_STATE_RUNNING && (goroutine->tid == tid || !tid))
        return 0;
    if (goroutine->public.state != GO_STATE_RUNNING)
        goroutine_set_state(replay, goroutine, GO_STATE_RUNNING, GO_WAIT_OTHER);
    goroutine->public.wait_reason = -1;
    if (!tid)
        return 0;
    goroutine->tid = tid;
    return take_thread(replay, goroutine, tid);
}

/* ------------------------------------------------------------------------------------------ the table */

int goroutine_get(struct go_replay *replay, uint64_t key, struct goroutine **ret_goroutine)
{
    struct goroutine *goroutine = goroutine_find(replay, key);

    if (!goroutine) {
        goroutine = calloc(1, sizeof(*goroutine));
        if (!goroutine)
            return -ENOMEM;
        goroutine->public.goroutine = key;
        goroutine->public.state = GO_STATE_UNKNOWN;
        goroutine->public.wait_reason = -1;
        goroutine->public.since_ns = replay->totals.last_ns;
        goroutine->public.born = ++replay->births;
        HASH_ADD(hh, replay->goroutines, public.goroutine, sizeof(goroutine->public.goroutine), goroutine);
        if (!goroutine->hh.tbl) {
            free(goroutine);
            return -ENOMEM;
        }
        account(replay, &goroutine->public, 1);
        update_idle(replay);
    }
    *ret_goroutine = goroutine;
    return 0;
}

const struct go_goroutine *go_replay_goroutine(const struct go_replay *replay, uint64_t key)
{
    const struct goroutine *goroutine = goroutine_find(replay, key);

    return goroutine ? &goroutine->public : NULL;
}

void goroutine_set_parent(struct go_replay *replay, struct goroutine *goroutine, uint64_t parent)
{
    struct goroutine *found = goroutine_find(replay, parent);

    goroutine->public.parent = parent;
    if (found && found->public.born >= goroutine->public.born) /* it was met before the one that made it */
        goroutine->public.born = ++replay->births;
    if (found)
        found->children++;
}

static struct goroutine *find_parent(const struct go_replay *replay, const struct go_goroutine *goroutine)
{
    struct goroutine *parent = goroutine->parent ? goroutine_find(replay, goroutine->parent) : NULL;

    return parent && parent->public.born < goroutine->born ? parent : NULL;
}

const struct go_goroutine *go_replay_parent(const struct go_replay *replay,
                                            const struct go_goroutine *goroutine)
{
    const struct goroutine *parent = find_parent(replay, goroutine);

    return parent ? &parent->public : NULL;
}

static void release(struct goroutine *goroutine)
{
    actions_release(goroutine);
    free(goroutine->held);
    free(goroutine);
}

/* Returns its parent, NULL: not in the table. */
static struct goroutine *remove_goroutine(struct go_replay *replay, struct goroutine *goroutine)
{
    struct goroutine *parent;

    HASH_DEL(replay->goroutines, goroutine);
    parent = find_parent(replay, &goroutine->public);
    release(goroutine);
    if (parent && parent->children)
        parent->children--;
    return parent;
}

void goroutine_forget(struct go_replay *replay, struct goroutine *ended)
{
    size_t above = 0;

    while (replay->goroutines && ended && ended->public.state == GO_STATE_ENDED) {
        if (!above && !ended->children) {
            ended = remove_goroutine(replay, ended);
        } else if (++above > ENDED_ANCESTORS && ended->children == 1) {
            /* It is kept for its descendants: the row of those above it must not grow without end. */
            ended = remove_goroutine(replay, ended);
            above = 0;
        } else {
            ended = find_parent(replay, &ended->public);
        }
    }
}

void goroutines_free(struct go_replay *replay)
{
    struct goroutine *goroutine, *next;
    struct runner *runner, *next_runner;

    HASH_ITER (hh, replay->goroutines, goroutine, next) {
        HASH_DEL(replay->goroutines, goroutine);
        release(goroutine);
    }
    HASH_ITER (hh, replay->runners, runner, next_runner) {
        HASH_DEL(replay->runners, runner);
        free(runner);
    }
}

static int by_goid(const void *left, const void *right)
{
    const struct goroutine *const *a = left, *const *b = right;

    return ((*a)->public.goroutine > (*b)->public.goroutine) -
           ((*a)->public.goroutine < (*b)->public.goroutine);
}

int go_replay_each(struct go_replay *replay, int (*visit)(void *context, const struct go_goroutine *),
                   void *context)
{
    struct goroutine *goroutine, *next, **sorted;
    size_t count = 0;
    int r = 0;

    sorted = calloc(HASH_COUNT(replay->goroutines) + 1, sizeof(struct goroutine *));
    if (!sorted)
        return -ENOMEM;
    HASH_ITER (hh, replay->goroutines, goroutine, next)
        sorted[count++] = goroutine;
    qsort(sorted, count, sizeof(struct goroutine *), by_goid);
    for (size_t i = 0; i < count && r == 0; i++)
        r = visit(context, &sorted[i]->public);
    free(sorted);
    return r;
}
