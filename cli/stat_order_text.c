/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/order/order_words.h"
#include "base/array.h"
#include "cli/output.h"
#include "cli/stat_order.h"

/* Of a long row of calls the first and the last ones are shown. */
enum { CALLS_FIRST = 4, CALLS_LAST = 3, RANGES_SHOWN = 6, DEEPEST_INDENT = 30 };

struct writer {
    FILE *out;
    const struct order_tree *order;
    bool everything;
};

/* A branch that is still to be written. */
struct pending {
    uint32_t node, indent;
};

static const struct prefix_node *node_at(const struct writer *writer, uint32_t node)
{
    return &writer->order->tree->nodes[node];
}

/* ---------------------------------------------------------------------------------------------- one row */

/* The nodes from `node` on that have no branching before them; returns how many, the last one in *ret_last.
 */
static size_t row_length(const struct writer *writer, uint32_t node, uint32_t *ret_last)
{
    size_t length = 1;

    while (node_at(writer, node)->child_count == 1 && node_at(writer, node)->ends == 0) {
        node = node_at(writer, node)->first_child;
        length++;
    }
    *ret_last = node;
    return length;
}

static int write_place(const struct writer *writer, uint32_t node)
{
    AUTO_FREE char *place = NULL, *iteration = NULL;

    if (order_words_place(writer->order, order_tree_place(writer->order, node), &place) < 0 ||
        order_words_iteration(writer->order, node, &iteration) < 0)
        return -ENOMEM;
    fputs(place, writer->out);
    if (*iteration)
        fprintf(writer->out, " (%s)", iteration);
    return 0;
}

/* "main@a.c:3 > work@a.c:7 > ...": no call is left out between nodes that were looked at. */
static int write_row(const struct writer *writer, uint32_t node, uint32_t *ret_last)
{
    size_t length = row_length(writer, node, ret_last);
    bool left_out = false;

    for (size_t i = 0; i < length; i++, node = node_at(writer, node)->first_child) {
        bool shown = writer->everything || i < CALLS_FIRST || i + CALLS_LAST >= length ||
                     order_words_function(writer->order, node)[0] == '\0';

        if (!shown && !left_out)
            fputs(" > ...", writer->out);
        left_out = !shown;
        if (!shown)
            continue;
        fputs(i ? " > " : "", writer->out);
        if (write_place(writer, node) < 0)
            return -ENOMEM;
    }
    return 0;
}

/* ---------------------------------------------------------------------------------------------- branches */

/* What the order says of a node that has siblings. To be ahead is remarkable only for a few: most are where
 * they wait for those behind. */
static const char *mark_of(const struct writer *writer, uint32_t number)
{
    const struct order_node *node = &writer->order->nodes[number];
    const struct prefix_node *at = node_at(writer, number);

    if (node->flags & ORDER_NODE_LEAST)
        return "  <- behind all others";
    if ((node->flags & ORDER_NODE_MOST) && 2 * at->count < node_at(writer, at->parent)->count)
        return "  <- ahead of all others";
    return "";
}

static void write_rank(const struct writer *writer, const struct order_node *node)
{
    if (!(node->flags & ORDER_NODE_RANKED))
        return;
    fprintf(writer->out, "T%u%s%s ", node->rank, node->flags & ORDER_NODE_UNORDERED ? "~" : "",
            node->flags & ORDER_NODE_ASSUMED ? "?" : "");
}

static int compare_ranks(const void *left, const void *right, void *context)
{
    const struct order_tree *order = context;
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    const struct order_node *x = &order->nodes[a], *y = &order->nodes[b];

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return (a > b) - (a < b);
}

/* The children of a node, the least progressed last, as a stack wants them. */
static int push_children(const struct writer *writer, uint32_t node, uint32_t indent, struct pending **stack,
                         size_t *count, size_t *capacity)
{
    const struct prefix_node *parent = node_at(writer, node);
    AUTO_FREE uint32_t *children = calloc(parent->child_count + 1, sizeof(*children));

    if (!children || array_reserve(stack, capacity, *count + parent->child_count) < 0)
        return -ENOMEM;
    for (uint32_t i = 0; i < parent->child_count; i++)
        children[i] = parent->first_child + i;
    qsort_r(children, parent->child_count, sizeof(*children), compare_ranks, (void *)writer->order);
    for (uint32_t i = parent->child_count; i-- > 0;)
        (*stack)[(*count)++] = (struct pending){children[i], indent};
    return 0;
}

/* Whether the order was asked of the branches of a node; otherwise they are only counted. */
static bool shows_branches(const struct writer *writer, uint32_t node)
{
    const struct prefix_node *parent = node_at(writer, node);

    return writer->everything || parent->child_count == 0 ||
           writer->order->nodes[parent->first_child].point != PREFIX_NONE;
}

static int write_branch(const struct writer *writer, const struct pending *branch, uint32_t *ret_last)
{
    const struct order_node *node = &writer->order->nodes[branch->node];
    AUTO_FREE char *label = NULL;

    if (prefix_tree_label(writer->order->tree, branch->node, RANGES_SHOWN, &label) < 0)
        return -ENOMEM;
    fprintf(writer->out, "%*s", 2 * (int)(branch->indent < DEEPEST_INDENT ? branch->indent : DEEPEST_INDENT),
            "");
    write_rank(writer, node);
    fprintf(writer->out, "%s ", label);
    if (write_row(writer, branch->node, ret_last) < 0)
        return -ENOMEM;
    if (!shows_branches(writer, *ret_last))
        fprintf(writer->out, " > (%u places)", node_at(writer, *ret_last)->child_count);
    fprintf(writer->out, "%s\n", mark_of(writer, branch->node));
    return 0;
}

static int write_tree(const struct writer *writer)
{
    AUTO_FREE struct pending *stack = NULL;
    size_t count = 0, capacity = 0;
    uint32_t last;

    if (push_children(writer, 0, 0, &stack, &count, &capacity) < 0)
        return -ENOMEM;
    while (count > 0) {
        struct pending branch = stack[--count];

        if (write_branch(writer, &branch, &last) < 0)
            return -ENOMEM;
        if (shows_branches(writer, last) &&
            push_children(writer, last, branch.indent + 1, &stack, &count, &capacity) < 0)
            return -ENOMEM;
    }
    return 0;
}

/* What the marks mean that stand in the tree. */
static void write_legend(const struct writer *writer)
{
    unsigned flags = 0;

    for (size_t i = 0; i < writer->order->tree->node_count; i++)
        if (writer->order->nodes[i].flags & ORDER_NODE_RANKED)
            flags |= writer->order->nodes[i].flags;
    if (!flags)
        return;
    fputs("\nT0 has got least far among its neighbours.", writer->out);
    if (flags & ORDER_NODE_UNORDERED)
        fputs(" ~: to some of them there is no order.", writer->out);
    if (flags & ORDER_NODE_ASSUMED)
        fputs(" ?: if they are in the same iteration, which is not known.", writer->out);
    fputc('\n', writer->out);
}

int stat_order_text(FILE *out, const struct order_tree *order, bool everything)
{
    const struct writer writer = {out, order, everything};
    AUTO_FREE char *words = NULL;

    if (order_words(order, &words) < 0)
        return -ENOMEM;
    fprintf(out, "%s\n\n", words);
    if (write_tree(&writer) < 0)
        return -ENOMEM;
    write_legend(&writer);
    return 0;
}
