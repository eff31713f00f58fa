/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Threads in order of progress, as `tracectl stat` prints them. */
#ifndef TRACECTL_CLI_LIVE_STAT_ORDER_H
#define TRACECTL_CLI_LIVE_STAT_ORDER_H

#include <jansson.h>
#include <stdio.h>

#include "analyzer/order/order_tree.h"

/* A sentence, and where it names no order the stacks (stat_stacks.h); else the tree: a line for calls that all threads of a node share, its branches below it, the
 * least progressed first. Nodes that the order was not asked of are shown up to their first branching; with
 * `everything`, to their end. -ENOMEM, or 0. */
int stat_order_text(FILE *out, const struct order_tree *order, bool everything);

/* {"words": ..., "behind": {...} or null, "classes": [...], "tree": {...}}; docs/stat.md describes the keys.
 * NULL: no memory. */
json_t *stat_order_json(const struct order_tree *order);

#endif
