/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to analyzer/order/: how far into its stack a thread is in its own program, and where it has called
 * the system's libraries permanently. */
#ifndef TRACECTL_ANALYZER_ORDER_OWN_CODE_H
#define TRACECTL_ANALYZER_ORDER_OWN_CODE_H

#include "analyzer/order/prefix_tree.h"

/* Of each thread how many of its places, from the outermost on, there are up to the last one in its own
 * program: what was not installed as a library of the system. All of them, where it has none in such code.
 * The caller frees the row. NULL: no memory. */
uint32_t *own_code_ends(const struct sample_set *set);

/* Whether a thread of the node is, behind the node's frame, in its own program again. */
bool own_code_goes_on(const struct prefix_tree *tree, uint32_t node, const uint32_t *ends);

#endif
