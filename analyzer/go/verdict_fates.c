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
    return suspect && suspect->outcome.fate != GO_FATE_STUCK && !suspect->silent;
}

static bool release(struct suspect *suspect, enum go_hope hope, uint64_t by)
{
    suspect->outcome.fate = GO_FATE_UNFINISHED;
    suspect->outcome.hope = hope;
    suspect->outcome.by = by;
    return true;
}

/* ------------------------------------------------------------------------------------------ relations */

static bool descends_from(const struct judgement *judgement, const struct go_goroutine *goroutine,
                          uint64_t ancestor)
{
    while (goroutine && goroutine->parent) {
        if (goroutine->parent == ancestor)
            return true;
        goroutine = go_replay_goroutine(judgement->replay, goroutine->parent);
    }
    return false;
}

static bool descends_from_user(const struct judgement *judgement, const struct go_goroutine *goroutine,
                               const struct go_object *object)
{
    for (size_t i = 0; i < object->user_count; i++)
        if (descends_from(judgement, goroutine, object->users[i].goroutine))
            return true;
    return false;
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
            return release(suspect, GO_HOPE_RELEASE, holders[i]);
    if (!waits_behind_writer(judgement, suspect))
        return false;
    for (size_t i = 0; i < judgement->count; i++) {
        const struct suspect *writer = &judgement->suspects[i];

        if (is_free(writer) && writer->waits && writer->waits->object == object &&
            writer->waits->operation == GO_OP_RWMUTEX_LOCK)
            return release(suspect, GO_HOPE_RELEASE, writer->outcome.goroutine);
    }
    return false;
}

/* One that has used the object and may go on. */
static bool by_user(const struct judgement *judgement, struct suspect *suspect,
                    const struct go_object *object)
{
    for (size_t i = 0; object && i < object->user_count; i++) {
        uint64_t user = object->users[i].goroutine;

        if (user != suspect->outcome.goroutine && is_free(judgement_find(judgement, user)))
            return release(suspect, GO_HOPE_RELEASE, user);
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
            return release(suspect, GO_HOPE_RELEASE, user->goroutine);
    }
    return false;
}

static bool by_descendant(const struct judgement *judgement, struct suspect *suspect,
                          const struct go_object *object)
{
    for (size_t i = 0; object && i < judgement->count; i++) {
        const struct suspect *other = &judgement->suspects[i];

        if (is_free(other) && descends_from_user(judgement, other->goroutine, object))
            return release(suspect, GO_HOPE_RELEASE, other->outcome.goroutine);
    }
    return false;
}

/* Whether somebody else has been on the other side. */
static bool has_met(const struct suspect *suspect, const struct go_object *object, uint64_t opposite)
{
    for (size_t i = 0; object && i < object->user_count; i++)
        if (object->users[i].goroutine != suspect->outcome.goroutine &&
            object->users[i].operations & opposite)
            return true;
    return object && object->more_users;
}

/* Its parent, a child, or one of the same parent. */
static bool by_relative(const struct judgement *judgement, struct suspect *suspect)
{
    uint64_t itself = suspect->outcome.goroutine, parent = suspect->goroutine->parent;

    for (size_t i = 0; i < judgement->count; i++) {
        const struct suspect *other = &judgement->suspects[i];

        if (is_free(other) &&
            (other->goroutine->parent == itself ||
             (parent && (other->goroutine->parent == parent || other->outcome.goroutine == parent))))
            return release(suspect, GO_HOPE_RELEASE, other->outcome.goroutine);
    }
    return false;
}

/* What a goroutine waits for, when timers are asked about it. */
struct timed {
    const struct judgement *judgement;
    uint64_t channel, since_ns;
    bool receives;
    bool may_be_contexts; /* nobody of the program is known to have made the channel, or to send on it */
};

/* What a function that a timer runs may do: one of package context closes a channel that that package has
 * made, what another one does nobody knows. */
static bool function_may_release(const struct timed *timed, enum go_role role)
{
    return role == GO_ROLE_PROGRAM || (role == GO_ROLE_TIMERS && timed->receives && timed->may_be_contexts);
}

/* One that sends does so on its own channel only; when it has run, to who waited there already. */
static int may_release(void *context, const struct go_timer *timer)
{
    const struct timed *timed = context;

    if (timer->due_ns > timed->judgement->totals.last_ns + GO_TIMER_HORIZON_NS)
        return false;
    if (timer->runs_function)
        return function_may_release(timed, judgement_role(timed->judgement, timer->site));
    return timed->receives && timer->channel && timer->channel == timed->channel &&
           (!timer->ran_ns || timed->since_ns <= timer->ran_ns);
}

/* A goroutine that the runtime has made, for the function of a timer. */
static bool is_made_by_timer(const struct suspect *suspect)
{
    const struct go_goroutine *goroutine = suspect->goroutine;

    return goroutine->created_ns && !goroutine->parent && goroutine->goroutine != GO_MAIN_GOROUTINE;
}

static bool by_timers_function(const struct timed *timed, struct suspect *suspect)
{
    const struct judgement *judgement = timed->judgement;

    for (size_t i = 0; i < judgement->count; i++) {
        const struct suspect *other = &judgement->suspects[i];

        if (other != suspect && is_free(other) && is_made_by_timer(other) &&
            function_may_release(timed, judgement_role(judgement, other->goroutine->function)))
            return release(suspect, GO_HOPE_RELEASE, other->outcome.goroutine);
    }
    return false;
}

static bool by_timer(const struct judgement *judgement, struct suspect *suspect, uint64_t channel,
                     enum go_op operation, bool met)
{
    const struct go_object *object = go_replay_object(judgement->replay, channel);
    struct timed timed = {
        .judgement = judgement,
        .channel = channel,
        .since_ns = suspect->goroutine->since_ns,
        .receives = operation == GO_OP_CHAN_RECV || operation == GO_OP_CHAN_RANGE,
        .may_be_contexts = !met && (!object || !object->from_start ||
                                    judgement_role(judgement, object->made_at) == GO_ROLE_TIMERS),
    };

    if (go_replay_each_timer(judgement->replay, may_release, &timed))
        return release(suspect, GO_HOPE_TIMER, 0);
    return by_timers_function(&timed, suspect);
}

/* Somebody on the other side of a channel, or of a condition. */
static bool by_peer(const struct judgement *judgement, struct suspect *suspect, uint64_t key,
                    enum go_op operation)
{
    const struct go_object *object = go_replay_object(judgement->replay, key);
    bool met = has_met(suspect, object, opposite_of(operation));

    if (!key)
        return false;
    return by_user(judgement, suspect, object) || (!met && by_relative(judgement, suspect)) ||
           by_timer(judgement, suspect, key, operation, met);
}

/* Whether the goroutine, which waits for others, can be released by one that may go on. */
static bool try_release(const struct judgement *judgement, struct suspect *suspect)
{
    const struct go_action *waits = suspect->waits;
    const struct go_object *object = go_replay_object(judgement->replay, waits->object);

    switch (waits->operation) {
    case GO_OP_SELECT:
        if (!waits->case_count || (uint64_t)waits->value > waits->case_count)
            return release(suspect, GO_HOPE_RUNTIME, 0); /* on a channel that was not recorded, perhaps */
        for (size_t i = 0; i < waits->case_count; i++)
            if (by_peer(judgement, suspect, waits->cases[i].object,
                        waits->cases[i].send ? GO_OP_CHAN_SEND : GO_OP_CHAN_RECV))
                return true;
        return false;
    case GO_OP_CHAN_SEND:
    case GO_OP_CHAN_RECV:
    case GO_OP_CHAN_RANGE:
    case GO_OP_COND_WAIT:
        return by_peer(judgement, suspect, waits->object, waits->operation);
    case GO_OP_WAITGROUP_WAIT:
        return by_user(judgement, suspect, object) || by_descendant(judgement, suspect, object);
    case GO_OP_BLOCK:
        return false;
    default:
        return by_holder(judgement, suspect) ||
               (object && !go_replay_holders(judgement->replay, waits->object, NULL, 0)
                    ? by_user(judgement, suspect, object)
                    : by_unlocker(judgement, suspect, object));
    }
}

/* ------------------------------------------------------------------------------------------ first fates */

static enum go_hope outside_hope(enum go_wait wait)
{
    switch (wait) {
    case GO_WAIT_SLEEP:
        return GO_HOPE_SLEEPS;
    case GO_WAIT_NETWORK:
        return GO_HOPE_NETWORK;
    default:
        return GO_HOPE_RUNTIME;
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
        release(suspect, GO_HOPE_RUNTIME, 0);
    else
        suspect->outcome.fate = GO_FATE_UNKNOWN;
}

/* What the goroutine's state alone says. */
static void first_fate(const struct judgement *judgement, struct suspect *suspect)
{
    const struct go_goroutine *goroutine = suspect->goroutine;

    suspect->outcome.fate = GO_FATE_STUCK;
    if (goroutine->state == GO_STATE_UNKNOWN)
        suspect->outcome.fate = GO_FATE_UNKNOWN;
    else if (goroutine->state != GO_STATE_BLOCKED)
        release(suspect, GO_HOPE_RUNS, 0);
    else if (!go_wait_on_others(goroutine->wait))
        release(suspect, outside_hope(goroutine->wait), 0);
    else if (waits_in_testing(judgement, goroutine))
        suspect->silent = true;
    else if (!suspect->waits && goroutine->wait != GO_WAIT_FOREVER && judgement->options->operations)
        unknown_wait(suspect);
}

void judgement_fates(struct judgement *judgement)
{
    bool again = true;

    for (size_t i = 0; i < judgement->count; i++)
        first_fate(judgement, &judgement->suspects[i]);
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
