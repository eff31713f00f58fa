/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/go/replay_state.h"
#include "base/array.h"

enum { MOST_UNUSED_OBJECTS = 100000 };

static struct object *object_find(const struct go_replay *replay, uint64_t key)
{
    struct object *object;

    HASH_FIND(hh, replay->objects, &key, sizeof(key), object);
    return object;
}

static void remove_object(struct go_replay *replay, struct object *object)
{
    HASH_DEL(replay->objects, object);
    free(object->holders);
    free(object);
}

void objects_free(struct go_replay *replay)
{
    struct object *object, *next;

    HASH_ITER (hh, replay->objects, object, next)
        remove_object(replay, object);
}

/* ------------------------------------------------------------------------------------------ forgetting */

static void keep(const struct go_replay *replay, uint64_t key)
{
    struct object *object = key ? object_find(replay, key) : NULL;

    if (object)
        object->kept = true;
}

static void keep_waited_for(const struct go_replay *replay)
{
    const struct goroutine *goroutine, *next;

    HASH_ITER (hh, replay->goroutines, goroutine, next) {
        for (size_t i = 0; i < goroutine->public.action_count; i++) {
            const struct go_action *action = &goroutine->actions[i];

            keep(replay, action->object);
            for (size_t j = 0; j < action->case_count; j++)
                keep(replay, action->cases[j].object);
        }
    }
}

static int by_use(const void *left, const void *right)
{
    const struct object *const *a = left, *const *b = right;

    return ((*a)->last_used > (*b)->last_used) - ((*a)->last_used < (*b)->last_used);
}

/* Forgets the older half of the objects that nobody holds or waits for, when they have become too many. */
static int objects_sweep(struct go_replay *replay)
{
    struct object *object, *next, **unused;
    size_t count = 0;

    if (HASH_COUNT(replay->objects) < replay->sweep_objects_at)
        return 0;
    unused = calloc(HASH_COUNT(replay->objects), sizeof(struct object *));
    if (!unused)
        return -ENOMEM;
    keep_waited_for(replay);
    HASH_ITER (hh, replay->objects, object, next) {
        if (!object->kept && !object->holder_count)
            unused[count++] = object;
        object->kept = false;
    }
    qsort(unused, count, sizeof(struct object *), by_use);
    for (size_t i = 0; i < count / 2; i++)
        remove_object(replay, unused[i]);
    free(unused);
    replay->sweep_objects_at = HASH_COUNT(replay->objects) + MOST_UNUSED_OBJECTS / 2;
    return 0;
}

static int object_get(struct go_replay *replay, uint64_t key, struct object **ret_object)
{
    struct object *object = object_find(replay, key);

    if (!object) {
        int r;

        if (!replay->sweep_objects_at)
            replay->sweep_objects_at = MOST_UNUSED_OBJECTS;
        r = objects_sweep(replay);
        if (r < 0)
            return r;
        object = calloc(1, sizeof(*object));
        if (!object)
            return -ENOMEM;
        object->public.object = key;
        object->public.counter_known = true;
        HASH_ADD(hh, replay->objects, public.object, sizeof(object->public.object), object);
        if (!object->hh.tbl) {
            free(object);
            return -ENOMEM;
        }
    }
    object->last_used = replay->totals.events;
    *ret_object = object;
    return 0;
}

/* ------------------------------------------------------------------------------------------ users */

/* The goroutine's place among the users, moved to the front; the oldest of too many is dropped. */
static struct go_user *front_user(struct go_object *object, uint64_t goroutine)
{
    struct go_user user = {.goroutine = goroutine};
    size_t at = 0;

    while (at < object->user_count && object->users[at].goroutine != goroutine)
        at++;
    if (at < object->user_count)
        user = object->users[at];
    else if (at == GO_OBJECT_USERS) {
        object->more_users = true;
        at--;
    } else
        object->user_count++;
    memmove(&object->users[1], &object->users[0], at * sizeof(user));
    object->users[0] = user;
    return &object->users[0];
}

/* What the operation adds to the counter of a wait group. */
static int64_t added_by(enum go_op operation, int64_t value)
{
    if (operation == GO_OP_WAITGROUP_ADD)
        return value;
    return operation == GO_OP_WAITGROUP_DONE ? -1 : 0;
}

int object_use(struct go_replay *replay, uint64_t key, enum go_op operation, uint64_t goroutine,
               uint32_t site, int64_t value)
{
    struct object *object;
    struct go_user *user;
    int r = object_get(replay, key, &object);

    if (r < 0)
        return r;
    if (operation == GO_OP_CHAN_MAKE) { /* the memory is another object from now on */
        struct go_object made = {.object = key, .made_at = site, .from_start = true, .counter_known = true};

        object->public = made;
    }
    user = front_user(&object->public, goroutine);
    user->operations |= (uint64_t)1 << operation;
    user->operation = (uint8_t)operation;
    user->ns = replay->totals.last_ns;
    user->site = site;
    user->added += added_by(operation, value);
    object->public.counter += added_by(operation, value);
    object->public.closed |= operation == GO_OP_CHAN_CLOSE;
    return 0;
}

int object_signals(struct go_replay *replay, uint64_t key)
{
    struct object *object;
    int r = key ? object_get(replay, key, &object) : 1;

    if (!r)
        object->public.signals = true;
    return r < 0 ? r : 0;
}

const struct go_object *go_replay_object(const struct go_replay *replay, uint64_t key)
{
    const struct object *object = object_find(replay, key);

    return object ? &object->public : NULL;
}

/* ------------------------------------------------------------------------------------------ locks */

size_t go_replay_holders(const struct go_replay *replay, uint64_t key, uint64_t *ret_goroutines,
                         size_t capacity)
{
    const struct object *object = object_find(replay, key);
    size_t count = object ? object->holder_count : 0;

    for (size_t i = 0; i < count && i < capacity; i++)
        ret_goroutines[i] = object->holders[i].goroutine;
    return count;
}

static bool takes_shared(const struct go_action *action)
{
    return action->operation == GO_OP_RWMUTEX_RLOCK || action->operation == GO_OP_RWMUTEX_TRYRLOCK;
}

/* Whether somebody has it in a way that excludes the operation. */
static bool is_taken(const struct object *object, bool shared)
{
    for (size_t i = 0; i < object->holder_count; i++)
        if (!shared || !object->holders[i].shared)
            return true;
    return false;
}

int object_lock(struct go_replay *replay, struct goroutine *goroutine, struct go_action *action, bool surely)
{
    struct lock_hold held = {action->object, action->site, replay->totals.last_ns, takes_shared(action)};
    struct object *object;
    int r = action->object ? object_get(replay, action->object, &object) : 1;

    if (r)
        return r < 0 ? r : 0;
    if (!surely && is_taken(object, held.shared)) {
        object->pending = goroutine->public.goroutine;
        return 0;
    }
    if (array_reserve(&object->holders, &object->holder_capacity, object->holder_count + 1) < 0 ||
        array_reserve(&goroutine->held, &goroutine->held_capacity, goroutine->public.held_count + 1) < 0)
        return -ENOMEM;
    if (object->pending == goroutine->public.goroutine)
        object->pending = 0;
    object->holders[object->holder_count++] = (struct holder){goroutine->public.goroutine, held.shared};
    goroutine->held[goroutine->public.held_count++] = held;
    goroutine->public.held = goroutine->held;
    action->acquired = true;
    return 0;
}

/* Takes the last such lock of the goroutine's out of its list. */
static void let_go(struct goroutine *goroutine, uint64_t object, bool shared)
{
    size_t count = goroutine->public.held_count, at = count;

    while (at > 0 && (goroutine->held[at - 1].object != object || goroutine->held[at - 1].shared != shared))
        at--;
    if (!at)
        return;
    memmove(&goroutine->held[at - 1], &goroutine->held[at], (count - at) * sizeof(*goroutine->held));
    goroutine->public.held_count--;
}

/* Takes a holder away: `goroutine` if it is one, else the first. False: there is none. */
static bool remove_holder(struct go_replay *replay, struct object *object, uint64_t goroutine, bool shared)
{
    size_t at = object->holder_count;
    struct goroutine *loser;

    for (size_t i = object->holder_count; i-- > 0;)
        if (object->holders[i].shared == shared &&
            (at == object->holder_count || object->holders[at].goroutine != goroutine))
            at = i;
    if (at == object->holder_count)
        return false;
    loser = goroutine_find(replay, object->holders[at].goroutine);
    if (loser)
        let_go(loser, object->public.object, shared);
    object->holder_count--;
    memmove(&object->holders[at], &object->holders[at + 1],
            (object->holder_count - at) * sizeof(*object->holders));
    return true;
}

void object_unlock_undone(struct go_replay *replay, struct goroutine *goroutine, struct go_action *action)
{
    struct object *object = object_find(replay, action->object);

    if (object)
        remove_holder(replay, object, goroutine->public.goroutine, takes_shared(action));
    action->acquired = false;
}

/* The one that tried and was not stopped: it has got the lock by now. */
static int give_to_pending(struct go_replay *replay, struct object *object)
{
    struct goroutine *goroutine = object->pending ? goroutine_find(replay, object->pending) : NULL;

    object->pending = 0;
    if (!goroutine || goroutine->public.state == GO_STATE_BLOCKED)
        return 0;
    for (size_t i = 0; i < goroutine->public.action_count; i++) {
        struct go_action *action = &goroutine->actions[i];

        if (action->object == object->public.object && !action->acquired)
            return object_lock(replay, goroutine, action, false);
    }
    return 0;
}

int object_unlock(struct go_replay *replay, struct goroutine *goroutine, uint64_t key, bool shared)
{
    struct object *object = object_find(replay, key);

    if (!object || !remove_holder(replay, object, goroutine->public.goroutine, shared))
        return 0;
    return give_to_pending(replay, object);
}

void objects_lost(struct go_replay *replay)
{
    struct goroutine *goroutine, *next_goroutine;
    struct object *object, *next;

    HASH_ITER (hh, replay->objects, object, next) {
        object->holder_count = 0;
        object->pending = 0;
        object->public.counter_known = false;
        object->public.from_start = false;
    }
    HASH_ITER (hh, replay->goroutines, goroutine, next_goroutine) {
        goroutine->public.held_count = 0;
        for (size_t i = 0; i < goroutine->public.action_count; i++)
            goroutine->actions[i].acquired = false;
    }
}
