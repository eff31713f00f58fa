/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the goroutines of one process cover. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/go/coverage_state.h"
#include "base/array.h"

/* Of a lock, at most so many holders are told that somebody waits: only read locks have more than one. */
enum { MOST_HOLDERS = 64 };

/* A goroutine that lives. */
struct resident {
    uint64_t goroutine;
    uint32_t node;
    struct usage **polled; /* selects with a default, which it took when it was there last */
    size_t polled_count, polled_capacity;
    UT_hash_handle hh;
};

/* Without padding: it is hashed as bytes. */
struct site_key {
    uint32_t site;
    uint16_t operation, polls;
};

struct site {
    struct site_key key;
    struct usage *usage; /* NULL: none that counts */
    UT_hash_handle hh;
};

struct go_coverage_observer {
    struct go_coverage *coverage;
    uint32_t run;
    struct go_place_source places;
    struct resident *residents;
    struct site *sites;
};

int go_coverage_observer_new(struct go_coverage *coverage, uint32_t run, struct go_place_source places,
                             struct go_coverage_observer **ret_observer)
{
    struct go_coverage_observer *observer = calloc(1, sizeof(*observer));

    if (!observer)
        return -ENOMEM;
    *observer = (struct go_coverage_observer){.coverage = coverage, .run = run, .places = places};
    *ret_observer = observer;
    return 0;
}

static void resident_free(struct resident *resident)
{
    free(resident->polled);
    free(resident);
}

void go_coverage_observer_free(struct go_coverage_observer *observer)
{
    struct resident *resident, *next_resident;
    struct site *site, *next_site;

    if (!observer)
        return;
    HASH_ITER (hh, observer->residents, resident, next_resident) {
        HASH_DEL(observer->residents, resident);
        resident_free(resident);
    }
    HASH_ITER (hh, observer->sites, site, next_site) {
        HASH_DEL(observer->sites, site);
        free(site);
    }
    free(observer);
}

/* ------------------------------------------------------------------------------------------ goroutines */

static int add_resident(struct go_coverage_observer *observer, uint64_t goroutine, uint32_t node,
                        struct resident **ret_resident)
{
    struct resident *resident = calloc(1, sizeof(*resident)), *added;

    if (!resident)
        return -ENOMEM;
    resident->goroutine = goroutine;
    resident->node = node;
    HASH_ADD(hh, observer->residents, goroutine, sizeof(resident->goroutine), resident);
    HASH_FIND(hh, observer->residents, &goroutine, sizeof(goroutine), added);
    if (!added) {
        free(resident);
        return -ENOMEM;
    }
    *ret_resident = resident;
    return 0;
}

static int get_resident(struct go_coverage_observer *observer, uint64_t goroutine,
                        struct resident **ret_resident)
{
    uint32_t node;
    int r;

    HASH_FIND(hh, observer->residents, &goroutine, sizeof(goroutine), *ret_resident);
    if (*ret_resident)
        return 0;
    r = node_get(observer->coverage, GO_NO_NODE, NULL, goroutine == 1, &node);
    return r < 0 ? r : add_resident(observer, goroutine, node, ret_resident);
}

static void ended(struct go_coverage_observer *observer, uint64_t goroutine)
{
    struct resident *resident;

    HASH_FIND(hh, observer->residents, &goroutine, sizeof(goroutine), resident);
    if (!resident)
        return;
    HASH_DEL(observer->residents, resident);
    resident_free(resident);
}

/* ------------------------------------------------------------------------------------------ sites */

/* The model's word for an operation at run time: a select of one case with a default is a send or a receive
 * there, Done is an Add, and a loop around a receive may be a range. */
static struct usage *find_in_model(const struct go_coverage *coverage, const char *file, int line,
                                   const struct site_key *key)
{
    static const uint8_t other_words[GO_OPS] = {[GO_OP_WAITGROUP_ADD] = GO_OP_WAITGROUP_DONE,
                                                [GO_OP_CHAN_RECV] = GO_OP_CHAN_RANGE,
                                                [GO_OP_CHAN_RANGE] = GO_OP_CHAN_RECV};
    struct usage *usage = NULL;

    if (key->polls)
        return usage_find(coverage, file, line, GO_OP_SELECT);
    if (key->operation < GO_OPS) {
        usage = usage_find(coverage, file, line, (enum go_op)key->operation);
        if (!usage && other_words[key->operation])
            usage = usage_find(coverage, file, line, (enum go_op)other_words[key->operation]);
    }
    return usage;
}

/* Sites that the model does not know count when they are in a file that it knows. */
static int find_usage(struct go_coverage_observer *observer, const struct site_key *key,
                      struct usage **ret_usage)
{
    enum go_op operation = key->polls ? GO_OP_SELECT : (enum go_op)key->operation;
    struct coverage_text *file;
    struct go_place place;
    int r = observer->places.find(observer->places.context, key->site, &place);

    if (r < 0)
        return r;
    HASH_FIND_STR(observer->coverage->texts, place.file, file);
    if (!file || !file->own_file)
        return 0;
    *ret_usage = find_in_model(observer->coverage, file->text, place.line, key);
    if (*ret_usage || !coverage_wanted(operation, !key->polls))
        return 0;
    return usage_add(observer->coverage, file->text, place.line, operation, !key->polls, ret_usage);
}

/* As the model has it, or as it was met before. */
static int known_usage(struct go_coverage_observer *observer, uint32_t site, enum go_op operation,
                       struct usage **ret_usage)
{
    struct coverage_text *file;
    struct go_place place;
    int r = observer->places.find(observer->places.context, site, &place);

    if (r < 0)
        return r;
    HASH_FIND_STR(observer->coverage->texts, place.file, file);
    *ret_usage = file ? usage_find(observer->coverage, file->text, place.line, operation) : NULL;
    return 0;
}

static int usage_of_site(struct go_coverage_observer *observer, uint32_t site, unsigned operation, bool polls,
                         struct usage **ret_usage)
{
    struct site_key key;
    struct site *known, *added;
    int r;

    memset(&key, 0, sizeof(key));
    key.site = site;
    key.operation = (uint16_t)operation;
    key.polls = polls;
    HASH_FIND(hh, observer->sites, &key, sizeof(key), known);
    if (!known) {
        known = calloc(1, sizeof(*known));
        if (!known)
            return -ENOMEM;
        known->key = key;
        r = find_usage(observer, &key, &known->usage);
        if (!r) {
            HASH_ADD(hh, observer->sites, key, sizeof(known->key), known);
            HASH_FIND(hh, observer->sites, &key, sizeof(key), added);
            r = added ? 0 : -ENOMEM;
        }
        if (r < 0) {
            free(known);
            return r;
        }
    }
    *ret_usage = known->usage;
    return 0;
}

/* ------------------------------------------------------------------------------------------ covering */

static int cover(const struct go_coverage_observer *observer, struct go_usage_part *part,
                 enum go_requirement_kind kind, uint32_t node)
{
    struct go_requirement *requirement = &part->requirements[kind];

    if (!requirement->wanted)
        return 0;
    /* the run's own covers are the last ones, as long as runs are observed one after the other */
    for (size_t i = requirement->cover_count; i-- > 0;) {
        if (requirement->covers[i].run == observer->run && requirement->covers[i].node == node)
            return 0;
        if (requirement->covers[i].run < observer->run)
            break;
    }
    if (array_reserve(&requirement->covers, &requirement->cover_capacity, requirement->cover_count + 1))
        return -ENOMEM;
    requirement->covers[requirement->cover_count++] = (struct go_cover){observer->run, node};
    return 0;
}

static int meet(struct usage *usage, uint32_t node)
{
    struct go_covered_usage *public = &usage->public;

    for (size_t i = 0; i < public->node_count; i++)
        if (public->nodes[i] == node)
            return 0;
    if (array_reserve(&public->nodes, &usage->node_capacity, public->node_count + 1))
        return -ENOMEM;
    public->nodes[public->node_count++] = node;
    return 0;
}

/* What an operation, or the case that a select chose, was like. */
static int cover_outcome(const struct go_coverage_observer *observer, struct go_usage_part *part,
                         const struct go_action *action, uint32_t node)
{
    int r = 0;

    if (action->blocked)
        r = cover(observer, part, GO_REQUIRE_BLOCKED, node);
    if (!r && action->woken)
        r = cover(observer, part, GO_REQUIRE_UNBLOCKING, node);
    if (!r && action->finished && !action->blocked && !action->woken)
        r = cover(observer, part, GO_REQUIRE_NOP, node);
    return r;
}

/* Takes the usage out of those that the goroutine polls: whether it was among them. */
static bool stop_polling(struct resident *resident, const struct usage *usage)
{
    for (size_t i = 0; i < resident->polled_count; i++) {
        if (resident->polled[i] != usage)
            continue;
        resident->polled[i] = resident->polled[--resident->polled_count];
        return true;
    }
    return false;
}

static int start_polling(struct resident *resident, struct usage *usage)
{
    stop_polling(resident, usage);
    if (array_reserve(&resident->polled, &resident->polled_capacity, resident->polled_count + 1))
        return -ENOMEM;
    resident->polled[resident->polled_count++] = usage;
    return 0;
}

/* The case that a select chose, -1: the default, -2: not known. */
static int64_t chosen_case(const struct go_action *action, size_t parts)
{
    bool one_case = action->operation != GO_OP_SELECT;

    if (!action->has_result)
        return one_case && action->woken ? 0 : -2;
    if (one_case)
        return action->result ? 0 : -1;
    return action->result >= -1 && action->result < (int64_t)parts ? action->result : -2;
}

/* A select with a default cannot block. A case counts as blocked when it was chosen after the default: the
 * goroutine has waited for it by polling. */
static int observe_poll(const struct go_coverage_observer *observer, struct usage *usage,
                        struct resident *resident, const struct go_action *action)
{
    int64_t chosen = chosen_case(action, usage->public.part_count);
    struct go_usage_part *part;
    int r = 0;

    if (chosen == -1)
        return start_polling(resident, usage);
    if (chosen < 0)
        return 0;
    part = &usage->public.parts[chosen];
    if (stop_polling(resident, usage))
        r = cover(observer, part, GO_REQUIRE_BLOCKED, resident->node);
    if (!r && action->woken)
        r = cover(observer, part, GO_REQUIRE_UNBLOCKING, resident->node);
    return r;
}

/* A select that is still waiting is blocked in each case that has a channel. */
static int observe_select(const struct go_coverage_observer *observer, struct usage *usage, uint32_t node,
                          const struct go_action *action)
{
    int64_t chosen = chosen_case(action, usage->public.part_count);
    int r = 0;

    if (chosen >= 0)
        return cover_outcome(observer, &usage->public.parts[chosen], action, node);
    if (action->finished || !action->blocked)
        return 0;
    for (size_t i = 0; !r && i < usage->public.part_count; i++)
        if (i >= action->case_count || action->cases[i].object)
            r = cover(observer, &usage->public.parts[i], GO_REQUIRE_BLOCKED, node);
    return r;
}

/* The cases that a select has at run time. */
static int meet_cases(struct go_coverage *coverage, struct usage *usage, const struct go_action *action)
{
    size_t known = usage->public.part_count;
    size_t count = action->operation == GO_OP_SELECT ? action->case_count : 1;
    int r = usage_set_parts(coverage, usage, count);

    for (size_t i = known; !r && i < count; i++)
        usage->public.parts[i].send =
            action->operation == GO_OP_SELECT ? action->cases[i].send : action->operation == GO_OP_CHAN_SEND;
    return r;
}

int go_coverage_observer_action(struct go_coverage_observer *observer, const struct go_goroutine *goroutine,
                                const struct go_action *action)
{
    bool polls = (action->flags & GO_FLAG_TRY) &&
                 (action->operation == GO_OP_SELECT || action->operation == GO_OP_CHAN_SEND ||
                  action->operation == GO_OP_CHAN_RECV);
    struct resident *resident;
    struct usage *usage = NULL;
    int r = 0;

    if (goroutine->system || !action->site || (action->flags & GO_FLAG_INNER))
        return 0;
    if (action->operation == GO_OP_WAITGROUP_ADD && action->value >= 0)
        return 0;
    r = usage_of_site(observer, action->site, action->operation, polls, &usage);
    if (r < 0 || !usage)
        return r;
    r = get_resident(observer, action->goroutine, &resident);
    if (!r)
        r = meet(usage, resident->node);
    if (!r && usage->public.operation == GO_OP_SELECT)
        r = meet_cases(observer->coverage, usage, action);
    if (r < 0)
        return r;
    if (usage->public.operation != GO_OP_SELECT)
        return cover_outcome(observer, usage->public.parts, action, resident->node);
    return polls ? observe_poll(observer, usage, resident, action)
                 : observe_select(observer, usage, resident->node, action);
}

/* ------------------------------------------------------------------------------------------ creating */

/* A go statement is met by what it makes. */
static int meet_go(struct go_coverage_observer *observer, uint32_t site, const struct resident *parent)
{
    struct usage *usage = NULL;
    int r = usage_of_site(observer, site, GO_OP_GO, false, &usage);

    if (r < 0 || !usage)
        return r;
    r = meet(usage, parent->node);
    return r < 0 ? r : cover(observer, usage->public.parts, GO_REQUIRE_NOP, parent->node);
}

static int created(struct go_coverage_observer *observer, const struct go_replay *replay,
                   const struct process_event *event)
{
    const struct go_goroutine *child = go_replay_goroutine(replay, event->other);
    struct resident *parent = NULL, *resident = NULL;
    struct go_place place;
    uint32_t node;
    int r;

    HASH_FIND(hh, observer->residents, &event->other, sizeof(event->other), resident);
    if (resident || (child && child->system))
        return 0;
    r = event->goroutine ? get_resident(observer, event->goroutine, &parent) : 0;
    if (!r)
        r = observer->places.find(observer->places.context, event->site, &place);
    if (!r)
        r = node_get(observer->coverage, parent ? parent->node : GO_NO_NODE, &place, false, &node);
    if (!r)
        r = add_resident(observer, event->other, node, &resident);
    return r || !parent ? r : meet_go(observer, event->site, parent);
}

/* ------------------------------------------------------------------------------------------ blocking */

/* The lock that a goroutine holds was taken at a place whose word is one of these. */
static int block_at(struct go_coverage_observer *observer, const struct lock_hold *held, uint32_t node)
{
    static const enum go_op words[2][4] = {
        {GO_OP_MUTEX_LOCK, GO_OP_RWMUTEX_LOCK, GO_OP_MUTEX_TRYLOCK, GO_OP_RWMUTEX_TRYLOCK},
        {GO_OP_RWMUTEX_RLOCK, GO_OP_RWMUTEX_TRYRLOCK}};
    int r = 0;

    for (size_t i = 0; !r && i < ARRAY_SIZE(words[0]) && words[held->shared][i]; i++) {
        struct usage *usage = NULL;

        r = known_usage(observer, held->site, words[held->shared][i], &usage);
        if (!r && usage)
            r = cover(observer, usage->public.parts, GO_REQUIRE_BLOCKING, node);
    }
    return r;
}

/* The goroutine holds a lock that another one has begun to wait for. */
static int blocks_others(struct go_coverage_observer *observer, const struct go_goroutine *holder,
                         uint64_t object)
{
    int r = 0;

    for (size_t i = 0; !r && i < holder->held_count; i++) {
        struct resident *resident;

        if (holder->held[i].object != object || !holder->held[i].site)
            continue;
        r = get_resident(observer, holder->goroutine, &resident);
        if (!r)
            r = block_at(observer, &holder->held[i], resident->node);
    }
    return r;
}

static bool takes_lock(unsigned operation)
{
    return operation == GO_OP_MUTEX_LOCK || operation == GO_OP_RWMUTEX_LOCK ||
           operation == GO_OP_RWMUTEX_RLOCK;
}

static int blocked(struct go_coverage_observer *observer, const struct go_replay *replay, uint64_t goroutine)
{
    const struct go_goroutine *waiter = go_replay_goroutine(replay, goroutine);
    uint64_t holders[MOST_HOLDERS];
    int r = 0;

    for (size_t i = 0; waiter && !r && i < waiter->action_count; i++) {
        const struct go_action *action = &waiter->actions[i];
        size_t count = takes_lock(action->operation)
                           ? go_replay_holders(replay, action->object, holders, MOST_HOLDERS)
                           : 0;

        for (size_t h = 0; !r && h < count && h < MOST_HOLDERS; h++) {
            const struct go_goroutine *holder = go_replay_goroutine(replay, holders[h]);

            if (holder && !holder->system && holders[h] != goroutine)
                r = blocks_others(observer, holder, action->object);
        }
    }
    return r;
}

int go_coverage_observer_event(struct go_coverage_observer *observer, const struct go_replay *replay,
                               const struct process_event *event)
{
    switch (event->kind) {
    case GO_EVENT_CREATE:
        return created(observer, replay, event);
    case GO_EVENT_END:
        ended(observer, event->goroutine);
        return 0;
    case GO_EVENT_BLOCK:
        return blocked(observer, replay, event->goroutine);
    default:
        return 0;
    }
}
