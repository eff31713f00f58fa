/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/order/order_branches.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyzer/order/order_words.h"
#include "base/array.h"

/* Of a long row of calls the first and the last ones are shown. */
enum { CALLS_FIRST = 4, CALLS_LAST = 3 };

static const struct prefix_node *node_at(const struct order_tree *order, uint32_t node)
{
    return &order->tree->nodes[node];
}

/* ---------------------------------------------------------------------------------------------- branches */

static int compare_ranks(const void *left, const void *right, void *context)
{
    const struct order_tree *order = context;
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    const struct order_node *x = &order->nodes[a], *y = &order->nodes[b];

    if ((x->flags ^ y->flags) & ORDER_NODE_APART)
        return x->flags & ORDER_NODE_APART ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return (a > b) - (a < b);
}

/* Branches that are still to be followed, the next one last. */
struct pending {
    struct order_branch *branches;
    size_t count, capacity;
};

static void pending_release(struct pending *pending)
{
    free(pending->branches);
}

static int push_children(const struct order_tree *order, uint32_t node, uint32_t depth, uint32_t above,
                         struct pending *pending)
{
    const struct prefix_node *parent = node_at(order, node);
    AUTO_FREE uint32_t *children = calloc(parent->child_count + 1, sizeof(*children));

    if (!children ||
        array_reserve(&pending->branches, &pending->capacity, pending->count + parent->child_count) < 0)
        return -ENOMEM;
    for (uint32_t i = 0; i < parent->child_count; i++)
        children[i] = parent->first_child + i;
    qsort_r(children, parent->child_count, sizeof(*children), compare_ranks, (void *)order);
    for (uint32_t i = parent->child_count; i-- > 0;)
        pending->branches[pending->count++] =
            (struct order_branch){.first = children[i], .depth = depth, .parent = above};
    return 0;
}

static uint32_t last_of_row(const struct order_tree *order, uint32_t node)
{
    while (node_at(order, node)->child_count == 1 && node_at(order, node)->ends == 0)
        node = node_at(order, node)->first_child;
    return node;
}

static bool was_asked(const struct order_tree *order, uint32_t node)
{
    const struct prefix_node *parent = node_at(order, node);

    return parent->child_count == 0 || order->nodes[parent->first_child].point != PREFIX_NONE;
}

int order_branches(const struct order_tree *order, bool everything, struct order_branch **ret_branches,
                   size_t *ret_count)
{
    CLEANUP(pending_release) struct pending pending = {0};
    AUTO_FREE struct order_branch *branches = NULL;
    size_t count = 0, capacity = 0;

    if (push_children(order, 0, 0, PREFIX_NONE, &pending) < 0)
        return -ENOMEM;
    while (pending.count > 0) {
        struct order_branch branch = pending.branches[--pending.count];

        branch.last = last_of_row(order, branch.first);
        branch.cut = !everything && !was_asked(order, branch.last);
        if (array_reserve(&branches, &capacity, count + 1) < 0)
            return -ENOMEM;
        branches[count++] = branch;
        if (!branch.cut &&
            push_children(order, branch.last, branch.depth + 1, (uint32_t)count - 1, &pending) < 0)
            return -ENOMEM;
    }
    *ret_branches = branches;
    *ret_count = count;
    branches = NULL;
    return 0;
}

/* ---------------------------------------------------------------------------------------------- one row */

static size_t row_length(const struct order_tree *order, const struct order_branch *branch)
{
    size_t length = 1;

    for (uint32_t node = branch->first; node != branch->last; node = node_at(order, node)->first_child)
        length++;
    return length;
}

static int write_place(FILE *out, const struct order_tree *order, uint32_t node)
{
    AUTO_FREE char *place = NULL, *iteration = NULL;

    if (order_words_place(order, order_tree_place(order, node), &place) < 0 ||
        order_words_iteration(order, node, &iteration) < 0)
        return -ENOMEM;
    fputs(place, out);
    if (*iteration)
        fprintf(out, " (%s)", iteration);
    return 0;
}

static int write_row(FILE *out, const struct order_tree *order, const struct order_branch *branch,
                     bool everything)
{
    size_t length = row_length(order, branch);
    uint32_t node = branch->first;
    bool left_out = false;

    for (size_t i = 0; i < length; i++, node = node_at(order, node)->first_child) {
        bool shown = everything || i < CALLS_FIRST || i + CALLS_LAST >= length ||
                     order_words_function(order, node)[0] == '\0';

        if (!shown && !left_out)
            fputs(" > ...", out);
        left_out = !shown;
        if (!shown)
            continue;
        fputs(i ? " > " : "", out);
        if (write_place(out, order, node) < 0)
            return -ENOMEM;
    }
    if (branch->cut)
        fprintf(out, " > (%u places)", node_at(order, branch->last)->child_count);
    return 0;
}

int order_branch_words(const struct order_tree *order, const struct order_branch *branch, bool everything,
                       char **ret_words)
{
    AUTO_FREE char *words = NULL;
    size_t size;
    FILE *out = open_memstream(&words, &size);
    int r;

    if (!out)
        return -ENOMEM;
    r = write_row(out, order, branch, everything);
    if (fclose(out) != 0 || r < 0)
        return -ENOMEM;
    *ret_words = words;
    words = NULL;
    return 0;
}

/* ---------------------------------------------------------------------------------------------- marks */

const char *order_branch_rank(const struct order_tree *order, const struct order_branch *branch,
                              char text[ORDER_RANK_SIZE])
{
    const struct order_node *node = &order->nodes[branch->first];

    text[0] = '\0';
    if (node->flags & ORDER_NODE_RANKED)
        snprintf(text, ORDER_RANK_SIZE, "T%u%s%s", node->rank, node->flags & ORDER_NODE_UNORDERED ? "~" : "",
                 node->flags & ORDER_NODE_ASSUMED ? "?" : "");
    return text;
}

/* To be ahead is remarkable only for a few: most are where they wait for those behind. */
unsigned order_branch_mark(const struct order_tree *order, const struct order_branch *branch)
{
    unsigned flags = order->nodes[branch->first].flags;
    const struct prefix_node *at = node_at(order, branch->first);

    if (flags & (ORDER_NODE_LEAST | ORDER_NODE_APART))
        return flags & ORDER_NODE_APART ? ORDER_NODE_APART : ORDER_NODE_LEAST;
    if ((flags & ORDER_NODE_MOST) && 2 * at->count < node_at(order, at->parent)->count)
        return ORDER_NODE_MOST;
    return 0;
}

const char *order_mark_words(unsigned mark)
{
    return mark == ORDER_NODE_LEAST   ? "least advanced"
           : mark == ORDER_NODE_MOST  ? "most advanced"
           : mark == ORDER_NODE_APART ? "apart: unknown caller"
                                      : "";
}

int order_legend(const struct order_tree *order, char **ret_words)
{
    unsigned flags = 0;

    for (size_t i = 0; i < order->tree->node_count; i++)
        if (order->nodes[i].flags & ORDER_NODE_RANKED)
            flags |= order->nodes[i].flags;
    if (asprintf(ret_words, "%s%s%s", flags ? "T0 is the least advanced of its siblings." : "",
                 flags & ORDER_NODE_UNORDERED ? " ~: no order relative to some siblings." : "",
                 flags & ORDER_NODE_ASSUMED ? " ?: assuming the same loop iteration, which is unknown."
                                            : "") < 0)
        return -ENOMEM;
    return 0;
}
