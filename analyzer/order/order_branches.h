/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The ordered tree as people are shown it: calls that all threads of a node share are one row, and the
 * branches behind it are the rows below, the least progressed first. */
#ifndef TRACECTL_ANALYZER_ORDER_ORDER_BRANCHES_H
#define TRACECTL_ANALYZER_ORDER_ORDER_BRANCHES_H

#include "analyzer/order/order_tree.h"

struct order_branch {
    uint32_t first, last; /* nodes: from the first to the last one there is no branching */
    uint32_t depth;       /* branchings above it */
    uint32_t parent;      /* number of the branch above, PREFIX_NONE: it begins at the root */
    bool cut;             /* it has branches that are not shown: the order was not asked of them */
};

/* All branches in the order of their rows, those of a node behind it; without `everything` those that the
 * order was asked of. The caller frees *ret_branches. -ENOMEM. */
int order_branches(const struct order_tree *order, bool everything, struct order_branch **ret_branches,
                   size_t *ret_count);

/* "main@a.c:3 > work@a.c:7 (iteration 2, i = 1) > ... > read > (3 places)". Without `everything`, calls in
 * the middle of a long row are left out. The caller frees *ret_words. -ENOMEM. */
int order_branch_words(const struct order_tree *order, const struct order_branch *branch, bool everything,
                       char **ret_words);

/* "T0", "T1~", "T1?"; "" where the branch was not compared. */
#define ORDER_RANK_SIZE 16
const char *order_branch_rank(const struct order_tree *order, const struct order_branch *branch,
                              char text[ORDER_RANK_SIZE]);

/* ORDER_NODE_APART, ORDER_NODE_LEAST, ORDER_NODE_MOST where that is worth a mark, or 0. */
unsigned order_branch_mark(const struct order_tree *order, const struct order_branch *branch);
/* What such a mark says: "behind all others", "ahead of all others" and the like; "" for 0. */
const char *order_mark_words(unsigned mark);

/* What the marks mean that stand in the tree, a sentence each; "" where there are none. The caller frees
 * *ret_words. -ENOMEM. */
int order_legend(const struct order_tree *order, char **ret_words);

#endif
