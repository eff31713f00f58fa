/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>

#include "analyzer/order/order_branches.h"
#include "analyzer/order/order_words.h"
#include "base/text.h"
#include "cli/live/stat_order.h"
#include "cli/live/stat_stacks.h"

enum { RANGES_SHOWN = 6, DEEPEST_INDENT = 30 };

static int write_branch(FILE *out, const struct order_tree *order, const struct order_branch *branch,
                        bool everything)
{
    unsigned indent = branch->depth < DEEPEST_INDENT ? branch->depth : DEEPEST_INDENT;
    const char *mark = order_mark_words(order_branch_mark(order, branch));
    AUTO_FREE char *label = NULL, *row = NULL;
    char rank[ORDER_RANK_SIZE];

    if (prefix_tree_label(order->tree, branch->first, RANGES_SHOWN, &label) < 0 ||
        order_branch_words(order, branch, everything, &row) < 0)
        return -ENOMEM;
    order_branch_rank(order, branch, rank);
    text_print(out, "%*s%s%s%s %s%s%s\n", 2 * (int)indent, "", rank, *rank ? " " : "", label, row,
               *mark ? "  <- " : "", mark);
    return 0;
}

/* Without an order the branches of the tree tell less than the stacks do. */
static bool shows_stacks(const struct order_tree *order, bool everything)
{
    uint32_t node = order_tree_branching(order);

    return order->decided == PREFIX_NONE && !everything && order->tree->nodes[node].child_count > 0;
}

int stat_order_text(FILE *out, const struct order_tree *order, bool everything)
{
    AUTO_FREE char *words = NULL, *legend = NULL;
    AUTO_FREE struct order_branch *branches = NULL;
    size_t count = 0;
    int r;

    if (order_words(order, &words) < 0 || order_legend(order, &legend) < 0 ||
        order_branches(order, everything, &branches, &count) < 0)
        return -ENOMEM;
    text_print(out, "%s\n\n", words);
    if (shows_stacks(order, everything))
        return stat_stacks_text(out, order->set);
    for (size_t i = 0; i < count; i++) {
        r = write_branch(out, order, &branches[i], everything);
        if (r < 0)
            return r;
    }
    if (*legend)
        text_print(out, "\n%s\n", legend);
    return 0;
}
