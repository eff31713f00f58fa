/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The operations that a goroutine is in: the outermost, and inside it those with GO_FLAG_INNER. What can be
 * around what: Cond.Wait and Once.Do around locking and unlocking, RWMutex's operations around those of the
 * Mutex that lies at its beginning and has its address. The latter holds nothing of its own here: the
 * RWMutex's state says the same.
 */
#include <errno.h>
#include <stdlib.h>

#include "analyzer/go/replay_state.h"
#include "base/array.h"

enum { MOST_CASES = 65536 }; /* the runtime's own limit */

/* ------------------------------------------------------------------------------------------ kinds */

static bool is_try(const struct go_action *action)
{
    return action->operation == GO_OP_MUTEX_TRYLOCK || action->operation == GO_OP_RWMUTEX_TRYLOCK ||
           action->operation == GO_OP_RWMUTEX_TRYRLOCK;
}

static bool is_lock(const struct go_action *action)
{
    return action->operation == GO_OP_MUTEX_LOCK || action->operation == GO_OP_RWMUTEX_LOCK ||
           action->operation == GO_OP_RWMUTEX_RLOCK || is_try(action);
}

static bool is_mutex(unsigned operation)
{
    return operation == GO_OP_MUTEX_LOCK || operation == GO_OP_MUTEX_TRYLOCK ||
           operation == GO_OP_MUTEX_UNLOCK;
}

static bool is_rwmutex(unsigned operation)
{
    return operation >= GO_OP_RWMUTEX_LOCK && operation <= GO_OP_RWMUTEX_RUNLOCK;
}

/* Whether the operation can stop its goroutine. */
static bool can_wait(const struct go_action *action)
{
    switch (action->operation) {
    case GO_OP_CHAN_SEND:
    case GO_OP_CHAN_RECV:
    case GO_OP_CHAN_RANGE:
    case GO_OP_SELECT:
        return !(action->flags & GO_FLAG_TRY);
    case GO_OP_RWMUTEX_UNLOCK: /* for the Mutex in it */
        return true;
    default:
        return go_op_can_wait(action->operation);
    }
}

bool go_operation_waits(unsigned operation, enum go_wait wait)
{
    switch (operation) {
    case GO_OP_CHAN_SEND:
    case GO_OP_CHAN_RECV:
    case GO_OP_CHAN_RANGE:
        return wait == GO_WAIT_CHAN || wait == GO_WAIT_FOREVER;
    case GO_OP_SELECT:
        return wait == GO_WAIT_SELECT || wait == GO_WAIT_CHAN || wait == GO_WAIT_FOREVER;
    case GO_OP_BLOCK:
        return wait == GO_WAIT_FOREVER;
    case GO_OP_MUTEX_LOCK:
    case GO_OP_RWMUTEX_LOCK:
    case GO_OP_RWMUTEX_RLOCK:
    case GO_OP_ONCE_DO:
        return wait == GO_WAIT_LOCK || wait == GO_WAIT_SEMAPHORE;
    case GO_OP_WAITGROUP_WAIT:
        return wait == GO_WAIT_GROUP || wait == GO_WAIT_SEMAPHORE;
    case GO_OP_COND_WAIT:
        return wait == GO_WAIT_COND;
    case GO_OP_SLEEP:
        return wait == GO_WAIT_SLEEP;
    default:
        return false;
    }
}

enum go_wait actions_wait(const struct goroutine *goroutine)
{
    static const enum go_wait kinds[] = {GO_WAIT_CHAN,      GO_WAIT_SELECT, GO_WAIT_FOREVER,
                                         GO_WAIT_SEMAPHORE, GO_WAIT_COND,   GO_WAIT_SLEEP};
    size_t count = goroutine->public.action_count;

    for (size_t i = 0; count && i < ARRAY_SIZE(kinds); i++)
        if (go_operation_waits(goroutine->actions[count - 1].operation, kinds[i]))
            return kinds[i];
    return GO_WAIT_OTHER;
}

/* Whether `inner` can be a part of `outer`. */
static bool can_be_inside(const struct go_action *outer, unsigned inner)
{
    switch (outer->operation) {
    case GO_OP_COND_WAIT:
        return is_mutex(inner) || is_rwmutex(inner);
    case GO_OP_ONCE_DO:
        return true;
    default:
        return is_rwmutex(outer->operation) && is_mutex(inner);
    }
}

/* ------------------------------------------------------------------------------------------ the stack */

static struct go_action *innermost(struct goroutine *goroutine)
{
    size_t count = goroutine->public.action_count;

    return count ? &goroutine->actions[count - 1] : NULL;
}

/* Whether the action is the locking of the Mutex inside the RWMutex around it. */
static bool is_hollow(const struct goroutine *goroutine, const struct go_action *action)
{
    size_t at = (size_t)(action - goroutine->actions);

    return at > 0 && action->flags & GO_FLAG_INNER && is_rwmutex(action[-1].operation) &&
           is_mutex(action->operation);
}

/* The channel that the operation has received from; 0: none, or not known. */
static uint64_t received_from(const struct go_action *action)
{
    const struct go_select_case *chosen;

    if (action->operation == GO_OP_CHAN_RECV || action->operation == GO_OP_CHAN_RANGE)
        return action->flags & GO_FLAG_TRY ? 0 : action->object;
    if (action->operation != GO_OP_SELECT || !action->has_result || action->result < 0 ||
        (size_t)action->result >= action->case_count)
        return 0;
    chosen = &action->cases[action->result];
    return chosen->send ? 0 : chosen->object;
}

/* The innermost operation is over: reports it and takes it off. `known`: something says that it is. */
static int finish(struct go_replay *replay, struct goroutine *goroutine, bool known)
{
    struct go_action *action = innermost(goroutine);
    int r = 0;

    action->finished |= known || !can_wait(action);
    if (action->finished)
        timers_received(replay, received_from(action), action->ns);
    if (action->finished && is_lock(action) && !is_try(action) && !action->acquired &&
        !is_hollow(goroutine, action))
        r = object_lock(replay, goroutine, action, true);
    if (r == 0 && replay->options.on_action)
        r = replay->options.on_action(replay->options.context, &goroutine->public, action);
    free(action->cases);
    goroutine->public.action_count--;
    return r;
}

int actions_end(struct go_replay *replay, struct goroutine *goroutine, bool known)
{
    int r = 0;

    while (r == 0 && goroutine->public.action_count)
        r = finish(replay, goroutine, known);
    return r;
}

int actions_report(const struct go_replay *replay, const struct goroutine *goroutine)
{
    int r = 0;

    for (size_t i = goroutine->public.action_count; r == 0 && i-- > 0;) {
        struct go_action action = goroutine->actions[i];

        action.finished |= !can_wait(&action);
        r = replay->options.on_action(replay->options.context, &goroutine->public, &action);
    }
    return r;
}

void actions_release(struct goroutine *goroutine)
{
    for (size_t i = 0; i < goroutine->public.action_count; i++)
        free(goroutine->actions[i].cases);
    free(goroutine->actions);
    goroutine->actions = NULL;
    goroutine->public.actions = NULL;
    goroutine->public.action_count = goroutine->action_capacity = 0;
}

/* Ends what the operation that begins is no part of. */
static int make_way(struct go_replay *replay, struct goroutine *goroutine, const struct process_event *event)
{
    bool inner = event->flags & GO_FLAG_INNER;
    int r = 0;

    while (r == 0 && goroutine->public.action_count &&
           !(inner && can_be_inside(innermost(goroutine), event->operation)))
        r = finish(replay, goroutine, true);
    return r;
}

/* ------------------------------------------------------------------------------------------ beginning */

/* What the operation does to its object as it begins. */
static int apply(struct go_replay *replay, struct goroutine *goroutine, struct go_action *action)
{
    if (is_hollow(goroutine, action))
        return 0;
    switch (action->operation) {
    case GO_OP_MUTEX_UNLOCK:
    case GO_OP_RWMUTEX_UNLOCK:
        return object_unlock(replay, goroutine, action->object, false);
    case GO_OP_RWMUTEX_RUNLOCK:
        return object_unlock(replay, goroutine, action->object, true);
    default:
        break;
    }
    if (!is_lock(action) || (is_try(action) && !(action->flags & GO_FLAG_DONE)))
        return 0;
    return object_lock(replay, goroutine, action, action->flags & GO_FLAG_DONE);
}

int actions_begin(struct go_replay *replay, struct goroutine *goroutine, const struct process_event *event)
{
    struct go_action action = {
        .goroutine = event->goroutine,
        .object = event->object,
        .value = event->value,
        .ns = replay->totals.last_ns,
        .site = event->site,
        .operation = event->operation,
        .flags = event->flags,
    };
    size_t count;
    int r = make_way(replay, goroutine, event);

    if (r == 0 && event->object && event->operation < GO_OPS)
        r = object_use(replay, event->object, event->operation, event->goroutine, event->site, event->value);
    count = goroutine->public.action_count;
    if (r == 0)
        r = array_reserve(&goroutine->actions, &goroutine->action_capacity, count + 1);
    if (r < 0)
        return r;
    goroutine->actions[count] = action;
    goroutine->public.actions = goroutine->actions;
    goroutine->public.action_count++;
    r = apply(replay, goroutine, innermost(goroutine));
    return r == 0 && action.flags & GO_FLAG_DONE ? finish(replay, goroutine, true) : r;
}

int actions_add_case(struct go_replay *replay, struct goroutine *goroutine, const struct process_event *event)
{
    struct go_action *action = innermost(goroutine);
    enum go_op operation = event->flags & GO_FLAG_SEND ? GO_OP_CHAN_SEND : GO_OP_CHAN_RECV;
    size_t number = (size_t)event->value, count;
    struct go_select_case *cases;

    if (!action || action->operation != GO_OP_SELECT || event->value < 0 || number >= MOST_CASES)
        return 0;
    count = number + 1 > action->case_count ? number + 1 : action->case_count;
    cases = realloc(action->cases, count * sizeof(*cases));
    if (!cases)
        return -ENOMEM;
    for (size_t i = action->case_count; i < count; i++)
        cases[i] = (struct go_select_case){0};
    cases[number] = (struct go_select_case){event->object, event->flags & GO_FLAG_SEND};
    action->cases = cases;
    action->case_count = count;
    return event->object ? object_use(replay, event->object, operation, event->goroutine, action->site, 0)
                         : 0;
}

/* ------------------------------------------------------------------------------------------ results */

static bool has_answer(const struct go_action *action)
{
    return action->operation == GO_OP_SELECT || is_try(action) || action->flags & GO_FLAG_TRY;
}

int actions_result(struct go_replay *replay, struct goroutine *goroutine, int64_t result)
{
    size_t at = goroutine->public.action_count;
    struct go_action *action;
    int r = 0;

    while (at > 0 && !has_answer(&goroutine->actions[at - 1]))
        at--;
    if (!at)
        return 0;
    while (r == 0 && goroutine->public.action_count > at)
        r = finish(replay, goroutine, true);
    action = innermost(goroutine);
    action->has_result = true;
    action->result = result;
    if (r == 0 && is_try(action) && result > 0 && !is_hollow(goroutine, action))
        r = object_lock(replay, goroutine, action, true);
    return r == 0 ? finish(replay, goroutine, true) : r;
}

/* ------------------------------------------------------------------------------------------ waiting */

/* The operation that the goroutine stops in, counted from 1; 0: none that it is known to be in. */
static size_t stopped_in(const struct go_replay *replay, const struct goroutine *goroutine, enum go_wait wait)
{
    size_t at = goroutine->public.action_count;

    if (!replay->options.wait_reasons)
        return at;
    while (at > 0 && !go_operation_waits(goroutine->actions[at - 1].operation, wait))
        at--;
    return at;
}

int actions_block(struct go_replay *replay, struct goroutine *goroutine, enum go_wait wait)
{
    size_t at = stopped_in(replay, goroutine, wait);
    int r = 0;

    /* The runtime may stop a goroutine anywhere, for the collection of garbage, say. */
    if (!at && wait == GO_WAIT_OTHER)
        return 0;
    while (r == 0 && goroutine->public.action_count > at)
        r = finish(replay, goroutine, true);
    for (size_t i = 0; r == 0 && i < at; i++) {
        struct go_action *action = &goroutine->actions[i];

        action->blocked = true;
        action->finished = false;
        if (action->acquired)
            object_unlock_undone(replay, goroutine, action);
    }
    return r;
}

int actions_resume(struct go_replay *replay, struct goroutine *goroutine)
{
    struct go_action *inner = innermost(goroutine);
    int r = 0;

    if (!inner || !inner->blocked)
        return 0;
    /* Cond.Wait has its lock to take yet. */
    inner->finished = inner->operation != GO_OP_COND_WAIT && inner->operation != GO_OP_ONCE_DO;
    for (size_t i = 0; r == 0 && i < goroutine->public.action_count; i++) {
        struct go_action *action = &goroutine->actions[i];

        if (is_lock(action) && !action->acquired && !is_hollow(goroutine, action))
            r = object_lock(replay, goroutine, action, false);
    }
    return r;
}

static bool concerns(const struct go_action *action, uint64_t object)
{
    if (action->object == object)
        return true;
    for (size_t i = 0; i < action->case_count; i++)
        if (action->cases[i].object == object)
            return true;
    return false;
}

/* Whether one operation is on what the other waits for. */
static bool meet(const struct go_action *action, const struct goroutine *woken)
{
    for (size_t i = 0; i < woken->public.action_count; i++) {
        const struct go_action *waiting = &woken->actions[i];

        if (waiting->object && concerns(action, waiting->object))
            return true;
        for (size_t j = 0; j < waiting->case_count; j++)
            if (waiting->cases[j].object && concerns(action, waiting->cases[j].object))
                return true;
    }
    return !woken->public.action_count; /* what it waits for began before the recording */
}

void actions_wake(struct goroutine *waker, struct goroutine *woken)
{
    for (size_t i = 0; i < waker->public.action_count; i++) {
        struct go_action *action = &waker->actions[i];

        if (!action->finished && meet(action, woken))
            action->woken++;
    }
    for (size_t i = 0; i < woken->public.action_count; i++)
        if (woken->actions[i].blocked && !woken->actions[i].finished)
            woken->actions[i].woken_by = waker->public.goroutine;
}

int actions_panic(struct go_replay *replay, struct goroutine *goroutine)
{
    const struct go_action *inner = innermost(goroutine);
    bool may_be_it = inner && !inner->finished && !inner->blocked &&
                     (inner->operation == GO_OP_CHAN_SEND || inner->operation == GO_OP_SELECT);

    return actions_end(replay, goroutine, !may_be_it);
}
