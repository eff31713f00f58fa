/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/go/verdict_state.h"

enum { MOST_HOLDERS = 64 };

#define OP(operation) ((uint64_t)1 << (operation))

uint64_t opposite_of(enum go_op operation)
{
    switch (operation) {
    case GO_OP_CHAN_SEND:
        return OP(GO_OP_CHAN_RECV) | OP(GO_OP_CHAN_RANGE);
    case GO_OP_CHAN_RECV:
    case GO_OP_CHAN_RANGE:
        return OP(GO_OP_CHAN_SEND) | OP(GO_OP_CHAN_CLOSE);
    case GO_OP_COND_WAIT:
        return OP(GO_OP_COND_SIGNAL) | OP(GO_OP_COND_BROADCAST);
    default:
        return 0;
    }
}

static bool is_free(const struct suspect *suspect)
{
    return suspect && suspect->outcome.kind != GO_OUTCOME_STUCK && !suspect->silent;
}

static bool release(struct suspect *suspect, enum go_unblock unblock, uint64_t by)
{
    suspect->outcome.kind = GO_OUTCOME_UNFINISHED;
    suspect->outcome.unblock = unblock;
    suspect->outcome.by = by;
    return true;
}

/* ------------------------------------------------------------------------------------------ releasing */

bool waits_behind_writer(const struct judgement *judgement, const struct suspect *suspect)
{
    uint64_t holders[MOST_HOLDERS], object = suspect->waits ? suspect->waits->object : 0;
    size_t count;

    if (!object || suspect->waits->operation != GO_OP_RWMUTEX_RLOCK)
        return false;
    count = go_replay_holders(judgement->replay, object, holders, MOST_HOLDERS);
    for (size_t i = 0; i < count && i < MOST_HOLDERS; i++) {
        const struct go_goroutine *holder = go_replay_goroutine(judgement->replay, holders[i]);

        for (size_t j = 0; holder && j < holder->held_count; j++)
            if (holder->held[j].object == object && !holder->held[j].shared)
                return false;
    }
    return true;
}

static bool by_holder(const struct judgement *judgement, struct suspect *suspect)
{
    uint64_t holders[MOST_HOLDERS], object = suspect->waits->object;
    size_t count = go_replay_holders(judgement->replay, object, holders, MOST_HOLDERS);

    for (size_t i = 0; i < count && i < MOST_HOLDERS; i++)
        if (is_free(judgement_find(judgement, holders[i])))
            return release(suspect, GO_UNBLOCK_RELEASE, holders[i]);
    if (!waits_behind_writer(judgement, suspect))
        return false;
    for (size_t i = 0; i < judgement->count; i++) {
        const struct suspect *writer = &judgement->suspects[i];

        if (is_free(writer) && writer->waits && writer->waits->object == object &&
            writer->waits->operation == GO_OP_RWMUTEX_LOCK)
            return release(suspect, GO_UNBLOCK_RELEASE, writer->outcome.goroutine);
    }
    return false;
}

/* One that has used the object and may continue. */
static bool by_user(const struct judgement *judgement, struct suspect *suspect,
                    const struct go_object *object)
{
    for (size_t i = 0; object && i < object->user_count; i++) {
        uint64_t user = object->users[i].goroutine;

        if (user != suspect->outcome.goroutine && is_free(judgement_find(judgement, user)))
            return release(suspect, GO_UNBLOCK_RELEASE, user);
    }
    return false;
}

/* One that has only ever unlocked the lock, as if it were a signal. */
static bool by_unlocker(const struct judgement *judgement, struct suspect *suspect,
                        const struct go_object *object)
{
    const uint64_t unlocks = OP(GO_OP_MUTEX_UNLOCK) | OP(GO_OP_RWMUTEX_UNLOCK) | OP(GO_OP_RWMUTEX_RUNLOCK);

    for (size_t i = 0; object && i < object->user_count; i++) {
        const struct go_user *user = &object->users[i];

        if (user->operations & unlocks && !(user->operations & ~unlocks) &&
            is_free(judgement_find(judgement, user->goroutine)))
            return release(suspect, GO_UNBLOCK_RELEASE, user->goroutine);
    }
    return false;
}

/* Whether another goroutine has been on the other side. */
static bool has_met(const struct suspect *suspect, const struct go_object *object, uint64_t opposite)
{
    for (size_t i = 0; object && i < object->user_count; i++)
        if (object->users[i].goroutine != suspect->outcome.goroutine &&
            object->users[i].operations & opposite)
            return true;
    return object && object->more_users;
}

/* What a goroutine waits for. */
struct wish {
    const struct judgement *judgement;
    struct suspect *suspect;
    const struct go_object *object; /* NULL: not known */
    uint64_t key;
    bool receives;        /* from a channel */
    bool may_be_contexts; /* it may be a channel that package context closes */
};

static struct wish wish_of(const struct judgement *judgement, struct suspect *suspect, uint64_t key,
                           enum go_op operation)
{
    const struct go_object *object = go_replay_object(judgement->replay, key);
    bool receives = operation == GO_OP_CHAN_RECV || operation == GO_OP_CHAN_RANGE;
    bool others_made_it =
        object && object->from_start && judgement_role(judgement, object->made_at) != GO_ROLE_TIMERS;

    return (struct wish){
        .judgement = judgement,
        .suspect = suspect,
        .object = object,
        .key = key,
        .receives = receives,
        .may_be_contexts = receives && !others_made_it && !has_met(suspect, object, opposite_of(operation)),
    };
}

/* What code of package context closes is a channel of its own; what other code does nobody knows. */
static bool code_may_release(const struct wish *wish, uint32_t function)
{
    enum go_role role = judgement_role(wish->judgement, function);

    return role == GO_ROLE_PROGRAM || (role == GO_ROLE_TIMERS && wish->may_be_contexts);
}

/* One that sends does so on its own channel only. */
static int timer_may_release(void *context, const struct go_timer *timer)
{
    const struct wish *wish = context;

    if (timer->due_ns > wish->judgement->totals.last_ns + GO_TIMER_HORIZON_NS)
        return false;
    if (timer->runs_function)
        return code_may_release(wish, timer->site);
    return wish->receives && timer->channel && timer->channel == wish->key;
}

static bool is_relative(const struct suspect *suspect, const struct suspect *other)
{
    uint64_t itself = suspect->outcome.goroutine, parent = suspect->goroutine->parent;

    return other->goroutine->parent == itself ||
           (parent && (other->goroutine->parent == parent || other->outcome.goroutine == parent));
}

/* Any one that may continue may come to the object yet, whoever has used it so far. Its parent, a child, or one
 * of the same parent is the likeliest. */
static bool by_anyone(const struct wish *wish)
{
    const struct judgement *judgement = wish->judgement;
    const struct suspect *found = NULL;

    for (size_t i = 0; i < judgement->count; i++) {
        const struct suspect *other = &judgement->suspects[i];

        if (is_free(other) && code_may_release(wish, other->goroutine->function) &&
            (!found || (is_relative(wish->suspect, other) && !is_relative(wish->suspect, found))))
            found = other;
    }
    return found && release(wish->suspect, GO_UNBLOCK_RELEASE, found->outcome.goroutine);
}

/* Somebody on the other side of a channel, or of a condition; or who leaves the wait group. */
static bool by_peer(const struct judgement *judgement, struct suspect *suspect, uint64_t key,
                    enum go_op operation)
{
    struct wish wish = wish_of(judgement, suspect, key, operation);

    if (!key)
        return false;
    if (by_user(judgement, suspect, wish.object))
        return true;
    if (go_replay_each_timer(judgement->replay, timer_may_release, &wish))
        return release(suspect, GO_UNBLOCK_TIMER, 0);
    if (wish.receives && wish.object && wish.object->signals)
        return release(suspect, GO_UNBLOCK_SIGNAL, 0);
    return by_anyone(&wish);
}

/* Whether the goroutine, which waits for others, can be released by one that may continue. */
static bool try_release(const struct judgement *judgement, struct suspect *suspect)
{
    const struct go_action *waits = suspect->waits;
    const struct go_object *object = go_replay_object(judgement->replay, waits->object);

    switch (waits->operation) {
    case GO_OP_SELECT:
        if (!waits->case_count || (uint64_t)waits->value > waits->case_count)
            return release(suspect, GO_UNBLOCK_RUNTIME, 0); /* on a channel that was not recorded, perhaps */
        for (size_t i = 0; i < waits->case_count; i++)
            if (by_peer(judgement, suspect, waits->cases[i].object,
                        waits->cases[i].send ? GO_OP_CHAN_SEND : GO_OP_CHAN_RECV))
                return true;
        return false;
    case GO_OP_CHAN_SEND:
    case GO_OP_CHAN_RECV:
    case GO_OP_CHAN_RANGE:
    case GO_OP_COND_WAIT:
    case GO_OP_WAITGROUP_WAIT:
        return by_peer(judgement, suspect, waits->object, waits->operation);
    case GO_OP_BLOCK:
        return false;
    default:
        return by_holder(judgement, suspect) ||
               (go_replay_holders(judgement->replay, waits->object, NULL, 0)
                    ? by_unlocker(judgement, suspect, object)
                    : by_peer(judgement, suspect, waits->object, waits->operation));
    }
}

/* ------------------------------------------------------------------------------------------ first outcomes */

static enum go_unblock outside_unblock(enum go_wait wait)
{
    switch (wait) {
    case GO_WAIT_SLEEP:
        return GO_UNBLOCK_SLEEPS;
    case GO_WAIT_NETWORK:
        return GO_UNBLOCK_NETWORK;
    default:
        return GO_UNBLOCK_RUNTIME;
    }
}

static bool waits_in_testing(const struct judgement *judgement, const struct go_goroutine *goroutine)
{
    return goroutine->action_count &&
           judgement_role(judgement, goroutine->actions[0].site) == GO_ROLE_TESTING;
}

/* It waits for others in no operation that was seen: one of before the recording, or in the runtime. */
static void unknown_wait(struct suspect *suspect)
{
    if (suspect->goroutine->created_ns || suspect->outcome.goroutine == 1)
        release(suspect, GO_UNBLOCK_RUNTIME, 0);
    else
        suspect->outcome.kind = GO_OUTCOME_UNKNOWN;
}

/* What the goroutine's state alone says. */
static void first_fate(const struct judgement *judgement, struct suspect *suspect)
{
    const struct go_goroutine *goroutine = suspect->goroutine;

    suspect->outcome.kind = GO_OUTCOME_STUCK;
    if (goroutine->state == GO_STATE_UNKNOWN)
        suspect->outcome.kind = GO_OUTCOME_UNKNOWN;
    else if (goroutine->state != GO_STATE_BLOCKED)
        release(suspect, GO_UNBLOCK_RUNS, 0);
    else if (!go_wait_on_others(goroutine->wait))
        release(suspect, outside_unblock(goroutine->wait), 0);
    else if (waits_in_testing(judgement, goroutine))
        suspect->silent = true;
    else if (!suspect->waits && goroutine->wait != GO_WAIT_FOREVER && judgement->options->operations)
        unknown_wait(suspect);
}

/* The runtime has found that none can run, and knows better than any record what each waits for. */
static bool all_are_asleep(const struct judgement *judgement)
{
    return judgement->totals.has_fatal && judgement->totals.fatal == GO_FATAL_DEADLOCK;
}

static void asleep_fate(const struct judgement *judgement, struct suspect *suspect)
{
    suspect->outcome.kind =
        suspect->goroutine->state == GO_STATE_UNKNOWN ? GO_OUTCOME_UNKNOWN : GO_OUTCOME_STUCK;
    suspect->silent = waits_in_testing(judgement, suspect->goroutine);
}

void judgement_fates(struct judgement *judgement)
{
    bool again = !all_are_asleep(judgement);

    for (size_t i = 0; i < judgement->count; i++)
        if (again)
            first_fate(judgement, &judgement->suspects[i]);
        else
            asleep_fate(judgement, &judgement->suspects[i]);
    while (again) {
        again = false;
        for (size_t i = 0; i < judgement->count; i++) {
            struct suspect *suspect = &judgement->suspects[i];

            if (is_stuck(suspect) && !suspect->silent && suspect->waits &&
                suspect->goroutine->wait != GO_WAIT_FOREVER)
                again |= try_release(judgement, suspect);
        }
    }
}
