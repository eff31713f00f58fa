/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The locks of goroutines for the search of orders that do not fit together (analyzer/locks/lock_order.h).
 * What really happened, such as a goroutine that locks what it holds, is the verdict's (verdict.h). */
#ifndef TRACECTL_ANALYZER_GO_LOCK_ORDER_H
#define TRACECTL_ANALYZER_GO_LOCK_ORDER_H

#include "analyzer/go/replay.h"
#include "analyzer/locks/lock_order.h"

/* For a replay's on_action, and behind the replay for each event. -ENOMEM. */
int go_lock_order_action(struct lock_order *order, const struct go_goroutine *goroutine,
                         const struct go_action *action);
int go_lock_order_event(struct lock_order *order, const struct process_event *event);

#endif
