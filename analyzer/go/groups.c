/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>

#include "analyzer/go/groups_state.h"
#include "base/array.h"

int go_groups_new(const struct go_groups_options *options, struct go_groups **ret_groups)
{
    struct go_groups *groups = calloc(1, sizeof(*groups));

    if (!groups || array_reserve(&groups->origins, &groups->origin_capacity, 1)) {
        free(groups);
        return -ENOMEM;
    }
    groups->options = *options;
    groups->now_ns = options->from_ns;
    groups->detail = GO_DETAIL_OPERATIONS;
    groups->origins[GO_ORIGIN_BEFORE] = (struct go_origin){.parent = GO_ORIGIN_BEFORE};
    groups->origin_count = 1;
    *ret_groups = groups;
    return 0;
}

static void free_member(struct member *member)
{
    struct made *made = member->made;

    while (made) {
        struct made *next = made->next;

        free(made);
        made = next;
    }
    free(member->offers);
    free(member);
}

void go_groups_free(struct go_groups *groups)
{
    struct member *member = NULL, *next = NULL;

    if (!groups)
        return;
    HASH_ITER (hh, groups->members, member, next) {
        HASH_DEL(groups->members, member);
        free_member(member);
    }
    used_objects_free(groups);
    origins_free(groups);
    free(groups);
}

unsigned groups_window(const struct go_groups *groups, uint64_t ns)
{
    uint64_t from = groups->options.from_ns, until = groups->options.until_ns;

    if (ns <= from || until <= from)
        return 0;
    return ns >= until ? GO_WINDOWS - 1
                       : (unsigned)((double)(ns - from) / (double)(until - from) * GO_WINDOWS);
}

enum go_wait groups_wait(const struct go_groups *groups, int64_t wait_reason)
{
    if (wait_reason < 0 || (uint64_t)wait_reason >= groups->options.wait_reason_count)
        return GO_WAIT_OTHER;
    return go_wait_of(groups->options.wait_reasons[wait_reason]);
}

/* ------------------------------------------------------------------------------------------ members */

/* The goroutine, which is of before the recording when it is new; NULL: no memory. */
static struct member *meet(struct go_groups *groups, uint64_t goroutine)
{
    struct member *member;

    HASH_FIND(hh, groups->members, &goroutine, sizeof(goroutine), member);
    if (member)
        return member;
    member = calloc(1, sizeof(*member));
    if (!member)
        return NULL;
    member->goroutine = goroutine;
    member->state = GO_STATE_UNKNOWN;
    member->since_ns = groups->now_ns;
    HASH_ADD(hh, groups->members, goroutine, sizeof(member->goroutine), member);
    if (!member->hh.tbl) {
        free(member);
        return NULL;
    }
    groups->origins[GO_ORIGIN_BEFORE].created++;
    groups->totals.met++;
    return member;
}

/* Notes that `parent` has made one of that origin now. */
static int note_made(struct go_groups *groups, struct member *parent, uint32_t origin)
{
    struct made *made = parent->made;

    while (made && made->origin != origin)
        made = made->next;
    if (!made) {
        made = calloc(1, sizeof(*made));
        if (!made)
            return -ENOMEM;
        *made = (struct made){.origin = origin, .next = parent->made};
        parent->made = made;
    }
    made->ns = groups->now_ns;
    return 0;
}

/* Whether waiting for that can be a part of the operation. */
static bool can_wait_in(enum go_wait wait, enum go_op operation)
{
    bool locks =
        operation == GO_OP_MUTEX_LOCK || operation == GO_OP_RWMUTEX_LOCK || operation == GO_OP_RWMUTEX_RLOCK;

    switch (wait) {
    case GO_WAIT_CHAN:
    case GO_WAIT_FOREVER:
        return operation == GO_OP_CHAN_SEND || operation == GO_OP_CHAN_RECV ||
               operation == GO_OP_CHAN_RANGE || (operation == GO_OP_BLOCK && wait == GO_WAIT_FOREVER);
    case GO_WAIT_SELECT:
        return operation == GO_OP_SELECT;
    case GO_WAIT_LOCK:
        return locks;
    case GO_WAIT_GROUP:
        return operation == GO_OP_WAITGROUP_WAIT;
    case GO_WAIT_SEMAPHORE:
        return locks || operation == GO_OP_WAITGROUP_WAIT;
    case GO_WAIT_COND:
        return operation == GO_OP_COND_WAIT;
    case GO_WAIT_SLEEP:
        return operation == GO_OP_SLEEP;
    default:
        return false;
    }
}

/* It waits at its objects (1), or no more (-1). */
static int wait_at_objects(struct go_groups *groups, const struct member *member, int change)
{
    int r = object_waits(groups, member->object, change);

    for (size_t i = 0; !r && i < member->offer_count; i++)
        r = object_waits(groups, member->offers[i].object, change);
    return r;
}

/* Another state; `seen`: a wait that ends by it did end now. */
static int set_state(struct go_groups *groups, struct member *member, enum go_state state, bool seen)
{
    int r = 0;

    if (member->state == GO_STATE_BLOCKED) {
        struct stop *stop = groups->stops[member->stop];
        uint64_t waited = groups->now_ns - member->since_ns;

        if (seen) {
            stop->completed++;
            stop->longest_ns = waited > stop->longest_ns ? waited : stop->longest_ns;
        }
        if (member->matches)
            r = wait_at_objects(groups, member, -1);
    }
    if (member->state != state)
        member->since_ns = groups->now_ns;
    member->state = (uint8_t)state;
    return r;
}

/* ------------------------------------------------------------------------------------------ events */

static int on_create(struct go_groups *groups, struct member *parent, const struct process_event *event)
{
    struct member *child = meet(groups, event->other);
    uint32_t origin;

    if (!child || origin_get(groups, parent ? parent->origin : GO_ORIGIN_BEFORE, event->site,
                             (uint32_t)event->value, &origin))
        return -ENOMEM;
    if (!child->created_ns && child->origin == GO_ORIGIN_BEFORE) {
        groups->origins[GO_ORIGIN_BEFORE].created--;
        groups->totals.met--;
    }
    child->parent = event->goroutine;
    child->created_ns = child->since_ns = groups->now_ns;
    child->origin = origin;
    child->state = groups->detail < GO_DETAIL_SCHEDULE ? GO_STATE_UNKNOWN : GO_STATE_RUNNABLE;
    child->timer_due_ns = parent ? parent->timer_due_ns : 0;
    groups->origins[origin].created++;
    groups->origins[origin].created_in[groups_window(groups, groups->now_ns)]++;
    groups->totals.created += !groups->origins[origin].system;
    return parent ? note_made(groups, parent, origin) : 0;
}

static int on_end(struct go_groups *groups, struct member *member)
{
    struct go_origin *origin = &groups->origins[member->origin];

    if (set_state(groups, member, GO_STATE_ENDED, true))
        return -ENOMEM;
    origin->ended++;
    origin->ended_in[groups_window(groups, groups->now_ns)]++;
    groups->totals.ended += !origin->system;
    HASH_DEL(groups->members, member);
    free_member(member);
    return 0;
}

static void forget_operation(struct member *member)
{
    member->operation = GO_OP_NONE;
    member->site = 0;
    member->object = 0;
    member->offer_count = 0;
    free(member->offers);
    member->offers = NULL;
}

static int on_operate(struct go_groups *groups, struct member *member, const struct process_event *event)
{
    int r = set_state(groups, member, GO_STATE_RUNNING, true);

    if (!r)
        r = object_used(groups, event->object, event->operation, false, member->goroutine, event->site);
    if (r || event->flags & GO_FLAG_INNER)
        return r;
    forget_operation(member);
    member->operation = event->operation;
    member->site = event->site;
    member->object = event->object;
    return 0;
}

/* The timer that was just set does nothing but send on a channel. */
static int on_timers_channel(struct go_groups *groups, struct member *member, uint64_t channel)
{
    int r = object_due(groups, channel, member->timer_set_ns);

    member->timer_due_ns = member->timer_before_ns;
    return r;
}

static int on_case(struct go_groups *groups, struct member *member, const struct process_event *event)
{
    size_t count = member->offer_count;
    struct offer *offers;

    if (event->flags & GO_FLAG_TIMER)
        return on_timers_channel(groups, member, event->object);
    offers = realloc(member->offers, (count + 1) * sizeof(*offers));
    if (!offers)
        return -ENOMEM;
    member->offers = offers;
    offers[member->offer_count++] = (struct offer){event->object, event->flags & GO_FLAG_SEND};
    return object_used(groups, event->object, GO_OP_SELECT, event->flags & GO_FLAG_SEND, member->goroutine,
                       member->site);
}

static int on_block(struct go_groups *groups, struct member *member, const struct process_event *event)
{
    struct stop_key key = {.origin = member->origin, .state = GO_STATE_BLOCKED};
    int r = set_state(groups, member, GO_STATE_BLOCKED, true);

    if (groups->detail < GO_DETAIL_WAITING)
        forget_operation(member);
    member->since_ns = groups->now_ns;
    member->wait_reason = (int16_t)(event->value & INT16_MAX);
    member->matches = can_wait_in(groups_wait(groups, member->wait_reason), member->operation);
    key.wait_reason = member->wait_reason;
    if (member->matches) {
        key.operation = member->operation;
        key.site = member->site;
    }
    if (!r)
        r = stop_get(groups, &key, &member->stop);
    return r || !member->matches ? r : wait_at_objects(groups, member, 1);
}

static int on_wake(struct go_groups *groups, uint64_t waker, struct member *woken)
{
    if (woken->state == GO_STATE_BLOCKED && woken->matches && woken->object)
        object_released(groups, woken->object, waker);
    return set_state(groups, woken, GO_STATE_RUNNABLE, true);
}

static void on_timer(const struct go_groups *groups, struct member *member, const struct process_event *event)
{
    const struct go_groups_options *options = &groups->options;

    member->timer_before_ns = member->timer_due_ns;
    member->timer_set_ns = (uint64_t)event->value;
    if ((!options->is_timer || options->is_timer(options->context, event->site)) &&
        (uint64_t)event->value > member->timer_due_ns)
        member->timer_due_ns = (uint64_t)event->value;
}

void groups_pass_detail(struct go_groups *groups)
{
    if (groups->detail_ns && groups->detail < GO_DETAILS)
        groups->totals.detail_ns[groups->detail] += groups->now_ns - groups->detail_ns;
    groups->detail_ns = groups->now_ns;
}

static int on_lost(struct go_groups *groups, uint64_t count)
{
    struct member *member = NULL, *next = NULL;
    int r = 0;

    groups->totals.lost += count;
    HASH_ITER (hh, groups->members, member, next)
        if (!r)
            r = set_state(groups, member, GO_STATE_UNKNOWN, false);
    return r;
}

/* What is done to objects is not seen any more, or again. */
static int on_detail(struct go_groups *groups, enum go_detail detail)
{
    enum go_detail before = groups->detail;
    struct member *member = NULL, *next = NULL;

    groups_pass_detail(groups);
    groups->detail = detail;
    if (detail < GO_DETAIL_WAITING)
        groups->complete_ns = UINT64_MAX;
    else if (before < GO_DETAIL_WAITING)
        groups->complete_ns = groups->now_ns;
    HASH_ITER (hh, groups->members, member, next)
        if (member->state != GO_STATE_BLOCKED)
            forget_operation(member);
    return detail < GO_DETAIL_SCHEDULE ? on_lost(groups, 0) : 0;
}

static int of_member(struct go_groups *groups, struct member *member, const struct process_event *event)
{
    switch ((enum go_event_kind)event->kind) {
    case GO_EVENT_END:
        return on_end(groups, member);
    case GO_EVENT_OPERATE:
        return on_operate(groups, member, event);
    case GO_EVENT_CASE:
        return on_case(groups, member, event);
    case GO_EVENT_BLOCK:
        return on_block(groups, member, event);
    case GO_EVENT_YIELD:
        return set_state(groups, member, GO_STATE_RUNNABLE, true);
    case GO_EVENT_TIMER:
        on_timer(groups, member, event);
        return 0;
    default:
        return set_state(groups, member, GO_STATE_RUNNING, true);
    }
}

int go_groups_event(struct go_groups *groups, const struct process_event *event)
{
    struct member *member = event->goroutine ? meet(groups, event->goroutine) : NULL;
    struct member *woken;

    groups->totals.events++;
    groups->now_ns = event->ns;
    if (event->goroutine && !member)
        return -ENOMEM;
    switch ((enum go_event_kind)event->kind) {
    case GO_EVENT_CREATE:
        return on_create(groups, member, event);
    case GO_EVENT_WAKE:
        woken = meet(groups, event->other);
        return woken ? on_wake(groups, event->goroutine, woken) : -ENOMEM;
    case GO_EVENT_LOST:
        return on_lost(groups, (uint64_t)event->value);
    case GO_EVENT_DETAIL:
        return on_detail(groups, (enum go_detail)event->value);
    case GO_EVENT_FATAL:
        groups->totals.has_fatal = true;
        groups->totals.fatal = (enum go_fatal)event->value;
        return 0;
    case GO_EVENT_EXIT:
        groups->totals.exited = true;
        return 0;
    default:
        return member ? of_member(groups, member, event) : 0;
    }
}
