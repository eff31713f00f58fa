/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/go/lock_order.h"

int go_lock_order_event(struct lock_order *order, const struct process_event *event)
{
    lock_order_tick(order);
    if (event->kind == GO_EVENT_CREATE)
        return lock_order_begin(order, event->other);
    if (event->kind == GO_EVENT_END)
        lock_order_end(order, event->goroutine);
    return 0;
}

/* What the operation itself took, of what its goroutine holds now; NULL: nothing. */
static const struct lock_hold *just_taken(const struct go_goroutine *goroutine,
                                          const struct go_action *action)
{
    for (size_t i = action->acquired ? goroutine->held_count : 0; i-- > 0;)
        if (goroutine->held[i].object == action->object && goroutine->held[i].site == action->site)
            return &goroutine->held[i];
    return NULL;
}

int go_lock_order_action(struct lock_order *order, const struct go_goroutine *goroutine,
                         const struct go_action *action)
{
    const struct lock_taking taking = {
        .agent = action->goroutine,
        .object = action->object,
        .site = action->site,
        .shared = action->operation == GO_OP_RWMUTEX_RLOCK,
        .writes = action->operation == GO_OP_RWMUTEX_LOCK,
        .stuck = action->blocked && !action->finished,
        .held = goroutine->held,
        .held_count = goroutine->held_count,
        .taken = just_taken(goroutine, action),
    };

    if (action->operation != GO_OP_MUTEX_LOCK && action->operation != GO_OP_RWMUTEX_LOCK &&
        action->operation != GO_OP_RWMUTEX_RLOCK)
        return 0;
    if (goroutine->system || !action->object || (action->flags & GO_FLAG_INNER))
        return 0;
    return lock_order_take(order, &taking);
}
