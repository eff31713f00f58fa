/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/go/groups_state.h"
#include "base/array.h"

enum {
    LEAK_COUNT = 5,      /* so many make a leak */
    LEAK_WINDOWS = 3,    /* made in so many parts of the observed time */
    LONG_WAITS = 3,      /* times as long as any that has ended */
    LONG_PART = 5,       /* a fifth of the observed time */
    HARDLY_ANY_ENDS = 10 /* one of so many at most */
};
static const uint64_t LONG_NS = 1000000000u;

/* All that live, sorted in one way or another. */
struct survey {
    struct go_groups *groups;
    struct member **members;
    size_t count;
    uint64_t now_ns;
};

/* ------------------------------------------------------------------------------------------ abandoned */

/* Somebody has used it in that direction, or a timer will. */
static bool used_since(const struct survey *survey, uint64_t object, bool send, uint64_t since_ns)
{
    const struct used_object *used = object ? object_get(survey->groups, object) : NULL;

    return used && (used->last[send ? TO_SEND : TO_RECEIVE].ns > since_ns ||
                    (!send && used->due_ns > survey->now_ns));
}

static bool objects_used(const struct survey *survey, const struct member *member)
{
    if (used_since(survey, member->object, member->operation == GO_OP_CHAN_SEND, member->since_ns))
        return true;
    for (size_t i = 0; i < member->offer_count; i++)
        if (used_since(survey, member->offers[i].object, member->offers[i].send, member->since_ns))
            return true;
    return false;
}

/* Longer than it takes there. */
static bool waits_long(const struct survey *survey, const struct member *member)
{
    const struct go_groups_options *options = &survey->groups->options;
    uint64_t complete_ns = survey->groups->complete_ns;
    uint64_t since_ns = member->since_ns > complete_ns ? member->since_ns : complete_ns;
    uint64_t waited = survey->now_ns > since_ns ? survey->now_ns - since_ns : 0;
    uint64_t observed = survey->now_ns > options->from_ns ? survey->now_ns - options->from_ns : 0;

    return waited >= LONG_NS && waited >= observed / LONG_PART &&
           waited >= LONG_WAITS * survey->groups->stops[member->stop]->longest_ns;
}

/* Whether nothing but its relatives can be expected to let it continue. */
static bool looks_abandoned(const struct survey *survey, const struct member *member)
{
    return member->state == GO_STATE_BLOCKED && member->created_ns && member->matches &&
           go_wait_on_others(groups_wait(survey->groups, member->wait_reason)) &&
           (member->object || member->offer_count || member->operation == GO_OP_BLOCK ||
            groups_wait(survey->groups, member->wait_reason) == GO_WAIT_FOREVER) &&
           member->timer_due_ns <= survey->now_ns && waits_long(survey, member) &&
           !objects_used(survey, member);
}

static struct member *find(const struct survey *survey, uint64_t goroutine)
{
    struct member *member;

    HASH_FIND(hh, survey->groups->members, &goroutine, sizeof(goroutine), member);
    return member;
}

/* Whether `parent` has made another one at the same place since. */
static bool is_overtaken(const struct member *parent, const struct member *member)
{
    for (const struct made *made = parent->made; made; made = made->next)
        if (made->origin == member->origin)
            return made->ns > member->created_ns;
    return false;
}

/* Whether one that its maker made between the siblings of its own origin before it and behind it may continue;
 * members are sorted by maker and time. */
static bool sibling_may_help(const struct survey *survey, size_t at)
{
    const struct member *member = survey->members[at];

    for (size_t i = at; i-- > 0;) {
        const struct member *sibling = survey->members[i];

        if (sibling->parent != member->parent || sibling->origin == member->origin)
            break;
        if (sibling->may_go_on)
            return true;
    }
    for (size_t i = at + 1; i < survey->count; i++) {
        const struct member *sibling = survey->members[i];

        if (sibling->parent != member->parent || sibling->origin == member->origin)
            break;
        if (sibling->may_go_on)
            return true;
    }
    return false;
}

/* Carries from those that may continue to those that they may let continue; whether there was one. */
static bool carry_on(const struct survey *survey)
{
    bool changed = false;

    for (size_t i = 0; i < survey->count; i++) {
        struct member *member = survey->members[i];
        struct member *parent = find(survey, member->parent);

        if (member->may_go_on && parent && !parent->may_go_on)
            changed = parent->may_go_on = true;
        if (member->may_go_on)
            continue;
        member->may_go_on =
            (parent && parent->may_go_on && !is_overtaken(parent, member)) || sibling_may_help(survey, i);
        changed |= member->may_go_on;
    }
    return changed;
}

static int by_maker(const void *left, const void *right)
{
    const struct member *a = *(struct member *const *)left, *b = *(struct member *const *)right;

    if (a->parent != b->parent)
        return a->parent < b->parent ? -1 : 1;
    if (a->created_ns != b->created_ns)
        return a->created_ns < b->created_ns ? -1 : 1;
    return (a->goroutine > b->goroutine) - (a->goroutine < b->goroutine);
}

static void find_abandoned(struct survey *survey)
{
    qsort(survey->members, survey->count, sizeof(struct member *), by_maker);
    for (size_t i = 0; i < survey->count; i++)
        survey->members[i]->may_go_on = !looks_abandoned(survey, survey->members[i]);
    while (carry_on(survey))
        ;
}

/* ------------------------------------------------------------------------------------------ groups */

static int by_group(const void *left, const void *right)
{
    const struct member *a = *(struct member *const *)left, *b = *(struct member *const *)right;

    if (a->stop != b->stop)
        return a->stop < b->stop ? -1 : 1;
    if (a->since_ns != b->since_ns)
        return a->since_ns < b->since_ns ? -1 : 1;
    return (a->goroutine > b->goroutine) - (a->goroutine < b->goroutine);
}

static struct go_group_member describe(const struct survey *survey, const struct member *member)
{
    const struct used_object *used = member->object ? object_get(survey->groups, member->object) : NULL;
    struct go_group_member described = {.goroutine = member->goroutine,
                                        .parent = member->parent,
                                        .created_ns = member->created_ns,
                                        .since_ns = member->since_ns,
                                        .object = member->object,
                                        .abandoned = !member->may_go_on};

    for (unsigned i = 0; used && i < DIRECTIONS; i++) {
        const struct use *use = &used->last[i];

        if (use->ns <= described.used_ns || use->goroutine == member->goroutine)
            continue;
        described.user = use->goroutine;
        described.used_ns = use->ns;
        described.used_at = use->site;
        described.used_with = use->operation;
    }
    return described;
}

static void add_members(const struct survey *survey, struct member *const *members, bool abandoned,
                        struct go_group *group)
{
    for (size_t i = 0; i < group->count && group->member_count < GO_GROUP_MEMBERS; i++)
        if (members[i]->may_go_on != abandoned)
            group->members[group->member_count++] = describe(survey, members[i]);
}

static unsigned count_windows(unsigned windows)
{
    return (unsigned)__builtin_popcount(windows);
}

static enum go_suspicion suspicion(const struct survey *survey, struct member *const *members,
                                   const struct go_group *group)
{
    const struct go_origin *origin = &survey->groups->origins[group->origin];
    unsigned abandoned_in = 0, made_in = 0;
    size_t made = 0;

    if (origin->system)
        return GO_SUSPICION_NONE;
    for (size_t i = 0; i < group->count; i++) {
        unsigned window = 1u << groups_window(survey->groups, members[i]->created_ns);

        if (!members[i]->created_ns)
            continue;
        made++;
        made_in |= window;
        abandoned_in |= members[i]->may_go_on ? 0 : window;
    }
    if (group->abandoned >= LEAK_COUNT && count_windows(abandoned_in) >= LEAK_WINDOWS)
        return GO_SUSPICION_LEAK;
    if (group->abandoned)
        return GO_SUSPICION_STILL;
    return made >= LEAK_COUNT && count_windows(made_in) >= LEAK_WINDOWS &&
                   origin->ended * HARDLY_ANY_ENDS <= origin->created
               ? GO_SUSPICION_GROWS
               : GO_SUSPICION_NONE;
}

/* `members` are all of one stop, the oldest first. */
static void make_group(const struct survey *survey, struct member *const *members, size_t count,
                       struct go_group *ret_group)
{
    const struct stop *stop = survey->groups->stops[members[0]->stop];
    struct go_group group = {.origin = stop->key.origin,
                             .state = (enum go_state)stop->key.state,
                             .wait_reason = stop->key.wait_reason,
                             .operation = (enum go_op)stop->key.operation,
                             .site = stop->key.site,
                             .count = count,
                             .oldest_ns = members[0]->since_ns,
                             .median_ns = members[count / 2]->since_ns,
                             .completed = stop->completed,
                             .longest_ns = stop->longest_ns};

    for (size_t i = 0; i < count; i++)
        group.abandoned += !members[i]->may_go_on;
    group.suspicion = suspicion(survey, members, &group);
    add_members(survey, members, true, &group);
    add_members(survey, members, false, &group);
    *ret_group = group;
}

static int by_suspicion(const void *left, const void *right)
{
    const struct go_group *a = left, *b = right;

    if (a->suspicion != b->suspicion)
        return a->suspicion > b->suspicion ? -1 : 1;
    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    if (a->origin != b->origin)
        return a->origin < b->origin ? -1 : 1;
    return (a->site > b->site) - (a->site < b->site);
}

static int make_groups(struct survey *survey, struct go_grouping *ret_grouping)
{
    size_t capacity = 0;

    qsort(survey->members, survey->count, sizeof(struct member *), by_group);
    for (size_t from = 0, to; from < survey->count; from = to) {
        for (to = from; to < survey->count && survey->members[to]->stop == survey->members[from]->stop; to++)
            ;
        if (array_reserve(&ret_grouping->groups, &capacity, ret_grouping->count + 1))
            return -ENOMEM;
        make_group(survey, survey->members + from, to - from, &ret_grouping->groups[ret_grouping->count++]);
    }
    if (ret_grouping->count)
        qsort(ret_grouping->groups, ret_grouping->count, sizeof(*ret_grouping->groups), by_suspicion);
    return 0;
}

/* Those that do not wait have a stop, too, from here on. */
static int collect(struct survey *survey)
{
    struct go_groups *groups = survey->groups;
    struct member *member = NULL, *next = NULL;
    int r = 0;

    survey->members = calloc(HASH_COUNT(groups->members) + 1, sizeof(struct member *));
    if (!survey->members)
        return -ENOMEM;
    HASH_ITER (hh, groups->members, member, next) {
        const struct stop_key key = {.origin = member->origin, .wait_reason = -1, .state = member->state};

        survey->members[survey->count++] = member;
        groups->totals.unknown += member->created_ns && member->state == GO_STATE_UNKNOWN;
        if (!r && member->state != GO_STATE_BLOCKED)
            r = stop_get(groups, &key, &member->stop);
    }
    return r;
}

int go_groups_judge(struct go_groups *groups, struct go_grouping *ret_grouping)
{
    struct survey survey = {.groups = groups, .now_ns = groups->options.until_ns};
    int r;

    if (groups->now_ns > survey.now_ns)
        survey.now_ns = groups->now_ns;
    *ret_grouping = (struct go_grouping){0};
    r = collect(&survey);
    if (!r) {
        find_abandoned(&survey);
        r = make_groups(&survey, ret_grouping);
    }
    free(survey.members);
    ret_grouping->origins = groups->origins;
    ret_grouping->origin_count = groups->origin_count;
    groups->now_ns = survey.now_ns;
    groups_pass_detail(groups);
    ret_grouping->totals = groups->totals;
    return r;
}

void go_grouping_release(struct go_grouping *grouping)
{
    free(grouping->groups);
    *grouping = (struct go_grouping){0};
}
