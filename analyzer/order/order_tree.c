/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/order/order_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/order/order_classes.h"
#include "analyzer/order/own_code.h"
#include "analyzer/order/tail_calls.h"
#include "base/array.h"
#include "base/error.h"
#include "base/path.h"

/* Children that stand in the same function. */
struct group {
    struct order_function *function; /* NULL: not known, or something is missing before it */
    struct order_point *points;
    struct order_place *places;
    uint32_t *children;
    size_t count;
};

/* ---------------------------------------------------------------------------------------------- groups */

/* Whether the stacks of all threads of a node begin with what the threads began with. */
static bool is_complete(const struct order_tree *order, uint32_t node)
{
    const struct prefix_node *at = &order->tree->nodes[node];

    for (size_t i = 0; i < at->count; i++)
        if (order->set->threads[order->tree->threads[at->first + i]].flags & SAMPLE_INCOMPLETE)
            return false;
    return true;
}

/* The function in which a child can be compared with others; NULL: it cannot. */
static struct order_function *function_of(const struct order_tree *order, uint32_t child)
{
    const struct sample_place *place = order_tree_place(order, child);
    uint32_t parent = order->tree->nodes[child].parent;
    struct order_function *function;

    if ((place->flags & (SAMPLE_INLINED | SAMPLE_AFTER_GAP)) || place->address == SAMPLE_NO_ADDRESS)
        return NULL;
    if (parent == 0 && !is_complete(order, child))
        return NULL;
    if (parent != 0 && !tail_calls_none_between(order->code, order_tree_place(order, parent), place))
        return NULL;
    function = order_code_function(order->code, place);
    return function && function->graph && !tail_calls_may_reenter(order->code, function) ? function : NULL;
}

/* The C library calls main(), and what a thread begins with, once: there is nothing to be understood about
 * that. */
static bool is_start_code(const struct order_tree *order, const struct sample_place *place)
{
    static const char *const names[] = {"libc.so", "libc-", "libpthread", "ld-", "libc.musl"};
    const char *path =
        place->image == SAMPLE_NO_IMAGE ? "" : sample_text(order->set, order->set->images[place->image].path);
    const char *base = path_file_name(path);

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (strncmp(base, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

/* Whether threads at this node may be in different rounds of something, though those of its parent are not.
 */
static bool is_hazy(const struct order_tree *order, uint32_t node)
{
    const struct sample_place *place = order_tree_place(order, node);
    const struct order_function *function;
    const struct order_point *point;
    uint32_t block;

    if ((place->flags & SAMPLE_INLINED) || (is_start_code(order, place) && is_complete(order, node)))
        return false;
    function = function_of(order, node);
    block = function ? flow_graph_block(function->graph, place->address) : FLOW_NONE;
    if (block == FLOW_NONE || !flow_graph_is_closed(function->graph) ||
        (function->graph->blocks[block].flags & FLOW_BLOCK_IRREDUCIBLE))
        return true;
    point = &order->points[order->nodes[node].point];
    for (uint32_t i = 0; i < point->depth; i++)
        if (!point->iterations[i].known)
            return true;
    return function->graph->blocks[block].loop != FLOW_NONE &&
           function->graph->loops[function->graph->blocks[block].loop].depth > ORDER_LOOPS_MAX;
}

/* Ranks the children of the group among themselves. */
static int rank_group(struct order_tree *order, struct group *group)
{
    bool hazy = order->nodes[order->tree->nodes[group->children[0]].parent].flags & ORDER_NODE_HAZY;
    int r;

    for (size_t i = 0; i < group->count; i++)
        group->points[i] = order->points[order->tree->nodes[group->children[i]].class];
    r = order_rank(group->function, group->points, group->count, group->places);
    for (size_t i = 0; r == 0 && i < group->count; i++) {
        struct order_node *node = &order->nodes[group->children[i]];

        node->flags |= ORDER_NODE_RANKED | (group->places[i].assumed || hazy ? ORDER_NODE_ASSUMED : 0) |
                       (group->places[i].unordered ? ORDER_NODE_UNORDERED : 0);
        node->rank = group->places[i].rank;
    }
    return r;
}

/* Takes those of `left` that stand in the function of the first one into the group; returns how many are
 * left. */
static size_t take_group(struct order_function **functions, uint32_t *left, size_t count, struct group *group)
{
    size_t kept = 0;

    group->function = functions[0];
    group->count = 0;
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || (functions[i] && functions[i] == group->function)) {
            group->children[group->count++] = left[i];
            continue;
        }
        functions[kept] = functions[i];
        left[kept++] = left[i];
    }
    return kept;
}

/* Who is behind, or ahead of, all others: the only one with the first, or last, rank, if all are ordered with
 * it. */
static void mark_ends(struct order_tree *order, uint32_t first, uint32_t count)
{
    uint32_t least = PREFIX_NONE, most = PREFIX_NONE, highest = 0, at_zero = 0, at_highest = 0;

    for (uint32_t i = first; i < first + count; i++)
        if (order->nodes[i].rank > highest)
            highest = order->nodes[i].rank;
    for (uint32_t i = first; i < first + count; i++) {
        if (order->nodes[i].rank == 0) {
            least = i;
            at_zero++;
        }
        if (order->nodes[i].rank == highest) {
            most = i;
            at_highest++;
        }
    }
    if (highest == 0)
        return;
    if (at_zero == 1 && !(order->nodes[least].flags & ORDER_NODE_UNORDERED))
        order->nodes[least].flags |= ORDER_NODE_LEAST;
    if (at_highest == 1 && !(order->nodes[most].flags & ORDER_NODE_UNORDERED))
        order->nodes[most].flags |= ORDER_NODE_MOST;
}

/* ---------------------------------------------------------------------------------------------- ranking */

static int rank_groups(struct order_tree *order, uint32_t first, uint32_t count, struct group *group,
                       struct order_function **functions, uint32_t *left)
{
    size_t remaining = count, groups = 0;
    int r = 0;

    for (uint32_t i = 0; i < count; i++) {
        left[i] = first + i;
        functions[i] = function_of(order, first + i);
    }
    while (r == 0 && remaining > 0) {
        remaining = take_group(functions, left, remaining, group);
        groups++;
        if (group->function && group->count > 1)
            r = rank_group(order, group);
    }
    for (uint32_t i = 0; groups > 1 && i < count; i++)
        order->nodes[first + i].flags |= ORDER_NODE_UNORDERED;
    if (r == 0)
        mark_ends(order, first, count);
    return r;
}

static int rank_children(struct order_tree *order, uint32_t node)
{
    uint32_t first = order->tree->nodes[node].first_child, count = order->tree->nodes[node].child_count;
    AUTO_FREE struct order_point *points = calloc(count + 1, sizeof(*points));
    AUTO_FREE struct order_place *places = calloc(count + 1, sizeof(*places));
    AUTO_FREE uint32_t *children = calloc(count + 1, sizeof(*children));
    AUTO_FREE uint32_t *left = calloc(count + 1, sizeof(*left));
    AUTO_FREE struct order_function **functions = calloc(count + 1, sizeof(struct order_function *));
    struct group group = {.points = points, .places = places, .children = children};

    if (!points || !places || !children || !left || !functions)
        return -ENOMEM;
    return rank_groups(order, first, count, &group, functions, left);
}

/* ---------------------------------------------------------------------------------------------- refining */

/* Nodes that the tree has got meanwhile. */
static int extend_nodes(struct order_tree *order, size_t from, bool looked_at)
{
    if (array_reserve(&order->nodes, &order->node_capacity, order->tree->node_count) < 0)
        return -ENOMEM;
    for (size_t i = from; i < order->tree->node_count; i++)
        order->nodes[i] = (struct order_node){.point = looked_at ? order->tree->nodes[i].class : PREFIX_NONE};
    for (size_t i = from; looked_at && i < order->tree->node_count; i++)
        if ((order->nodes[order->tree->nodes[i].parent].flags & ORDER_NODE_HAZY) ||
            is_hazy(order, (uint32_t)i))
            order->nodes[i].flags |= ORDER_NODE_HAZY;
    return 0;
}

static int refine(struct order_tree *order, uint32_t node)
{
    const struct prefix_classes classes = {order->classes, order_classes_find};
    size_t from = order->tree->node_count;
    int r = prefix_tree_expand(order->tree, node, &classes);

    if (r == 0)
        r = extend_nodes(order, from, true);
    return r == 0 && order->tree->nodes[node].child_count > 1 ? rank_children(order, node) : r;
}

/* The child of the node that is behind all others, or PREFIX_NONE. */
static uint32_t least_child(const struct order_tree *order, uint32_t node)
{
    const struct prefix_node *parent = &order->tree->nodes[node];

    for (uint32_t i = 0; i < parent->child_count; i++)
        if (order->nodes[parent->first_child + i].flags & ORDER_NODE_LEAST)
            return parent->first_child + i;
    return PREFIX_NONE;
}

/* Where the question leads to from a node that was refined: into a child, unless another one is behind it, or
 * its threads have left their own program permanently. */
static bool leads_into(const struct order_tree *order, uint32_t child, bool everything, const uint32_t *own)
{
    uint32_t least = least_child(order, order->tree->nodes[child].parent);

    if (order->tree->nodes[child].count == 1)
        return false;
    return everything ||
           ((least == PREFIX_NONE || least == child) && own_code_goes_on(order->tree, child, own));
}

/* Nodes are refined in the order in which they come up; what the question does not lead to is merged without
 * order. */
static int refine_all(struct order_tree *order, bool everything)
{
    AUTO_FREE uint32_t *queue = NULL, *own = own_code_ends(order->set);
    size_t count = 0, capacity = 0;
    int r = own ? array_reserve(&queue, &capacity, 1) : -ENOMEM;

    if (r == 0)
        queue[count++] = 0;
    for (size_t at = 0; r == 0 && at < count; at++) {
        uint32_t node = queue[at], first, children;

        r = refine(order, node);
        first = order->tree->nodes[node].first_child;
        children = order->tree->nodes[node].child_count;
        for (uint32_t child = first; r == 0 && child < first + children; child++) {
            size_t from = order->tree->node_count;

            if (leads_into(order, child, everything, own)) {
                r = array_reserve(&queue, &capacity, count + 1);
                if (r == 0)
                    queue[count++] = child;
                continue;
            }
            r = prefix_tree_expand_all(order->tree, child);
            if (r == 0)
                r = extend_nodes(order, from, false);
        }
    }
    return r;
}

/* Of the nodes that tell who is behind, the one that tells it of most threads. */
static void find_decided(struct order_tree *order)
{
    order->decided = PREFIX_NONE;
    for (uint32_t i = 0; i < order->tree->node_count; i++) {
        const struct prefix_node *node = &order->tree->nodes[i];

        if (node->first_child == PREFIX_NONE || least_child(order, i) == PREFIX_NONE)
            continue;
        if (order->decided == PREFIX_NONE || node->count > order->tree->nodes[order->decided].count)
            order->decided = i;
    }
}

/* The node of which one child is behind the others, below a child that is: where the threads part next. */
static uint32_t next_decided(const struct order_tree *order, uint32_t node)
{
    const struct prefix_node *nodes = order->tree->nodes;

    while (nodes[node].child_count == 1 && nodes[node].ends == 0)
        node = nodes[node].first_child;
    return nodes[node].child_count > 1 && least_child(order, node) != PREFIX_NONE ? node : PREFIX_NONE;
}

static void find_last(struct order_tree *order)
{
    order->last = PREFIX_NONE;
    for (uint32_t node = order->decided; node != PREFIX_NONE; node = next_decided(order, order->last))
        order->last = least_child(order, node);
}

/* ---------------------------------------------------------------------------------------------- who is apart
 */

/* Whether nobody knows what the node's threads began with. */
static bool is_cut_off(const struct order_tree *order, uint32_t node)
{
    const struct prefix_node *at = &order->tree->nodes[node];

    for (size_t i = 0; i < at->count; i++)
        if (!(order->set->threads[order->tree->threads[at->first + i]].flags & SAMPLE_INCOMPLETE))
            return false;
    return true;
}

static void find_apart(struct order_tree *order)
{
    const struct prefix_node *root = &order->tree->nodes[0];
    size_t cut_off = 0;

    for (uint32_t child = root->first_child; child < root->first_child + root->child_count; child++)
        cut_off += is_cut_off(order, child) ? order->tree->nodes[child].count : 0;
    if (2 * cut_off > root->count)
        return;
    for (uint32_t child = root->first_child; child < root->first_child + root->child_count; child++)
        order->nodes[child].flags |= is_cut_off(order, child) ? ORDER_NODE_APART : 0;
}

uint32_t order_tree_branching(const struct order_tree *order)
{
    const struct prefix_node *nodes = order->tree->nodes;
    uint32_t node = 0, others = 0, other = 0;

    for (uint32_t i = 0; i < nodes[0].child_count; i++)
        if (!(order->nodes[nodes[0].first_child + i].flags & ORDER_NODE_APART)) {
            other = nodes[0].first_child + i;
            others++;
        }
    if (others == 1 && nodes[0].ends == 0)
        node = other;
    while (nodes[node].child_count == 1 && nodes[node].ends == 0)
        node = nodes[node].first_child;
    return node;
}

bool order_comparable(const struct sample_set *set)
{
    bool several = false;

    for (size_t i = 0; i < set->thread_count; i++) {
        if (set->threads[i].rank != SAMPLE_NO_RANK)
            return true;
        several |= set->threads[i].process != set->threads[0].process;
    }
    return !several;
}

static void forget_ranks(struct order_tree *order)
{
    order->decided = order->last = PREFIX_NONE;
    for (uint32_t i = 0; i < order->tree->node_count; i++)
        order->nodes[i].flags &=
            ~(unsigned)(ORDER_NODE_RANKED | ORDER_NODE_LEAST | ORDER_NODE_MOST | ORDER_NODE_ASSUMED);
}

/* ---------------------------------------------------------------------------------------------- life */

int order_tree_new(const struct sample_set *set, const struct order_source *source, bool everything,
                   struct order_tree **ret_tree, struct error *err)
{
    AUTO_ORDER_TREE struct order_tree *order = calloc(1, sizeof(*order));
    int r;

    if (!order)
        return error_no_memory(err), -ENOMEM;
    order->set = set;
    r = order_code_new(set, &order->code, err);
    if (r < 0)
        return r;
    r = prefix_tree_new(set, PREFIX_POINT, &order->tree);
    if (r == 0)
        r = order_classes_new(order, source, &order->classes);
    if (r == 0)
        r = extend_nodes(order, 0, false);
    if (r == 0)
        r = refine_all(order, everything);
    if (r < 0)
        return r == -ENOMEM ? (error_no_memory(err), -ENOMEM)
                            : error_set(err, r, NULL, "cannot order the threads");
    if (order_comparable(set)) {
        find_decided(order);
        find_last(order);
    } else {
        forget_ranks(order);
    }
    find_apart(order);
    *ret_tree = take_pointer(order);
    return 0;
}

void order_tree_free(struct order_tree *order)
{
    if (!order)
        return;
    order_classes_free(order->classes);
    prefix_tree_free(order->tree);
    order_code_free(order->code);
    free(order->nodes);
    free(order->points);
    free(order->variables);
    free(order);
}

const struct order_iteration *order_tree_iteration(const struct order_tree *order, uint32_t node,
                                                   const struct order_variable **ret_variable)
{
    uint32_t number = order->nodes[node].point;

    if (number == PREFIX_NONE)
        return NULL;
    for (uint32_t i = order->points[number].depth; i-- > 0;) {
        if (!order->points[number].iterations[i].known)
            continue;
        *ret_variable = &order->variables[number][i];
        return &order->points[number].iterations[i];
    }
    return NULL;
}

/* ---------------------------------------------------------------------------------------------- threads */

/* Where the thread is in the tree's row of threads. O(threads). */
static size_t position_of(const struct order_tree *order, uint32_t thread)
{
    size_t at = 0;

    while (order->tree->threads[at] != thread)
        at++;
    return at;
}

/* The child of the node that holds that position, or PREFIX_NONE. */
static uint32_t child_at(const struct prefix_tree *tree, uint32_t node, size_t position)
{
    const struct prefix_node *parent = &tree->nodes[node];

    for (uint32_t i = 0; i < parent->child_count; i++)
        if (position - tree->nodes[parent->first_child + i].first <
            tree->nodes[parent->first_child + i].count)
            return parent->first_child + i;
    return PREFIX_NONE;
}

static int compare_children(const struct order_tree *order, uint32_t a, uint32_t b,
                            struct order_answer *answer)
{
    const struct order_function *function = function_of(order, a);
    int r;

    if (!function || function != function_of(order, b) || order->nodes[a].point == PREFIX_NONE)
        return 0;
    r = order_compare(function, &order->points[order->nodes[a].point], &order->points[order->nodes[b].point],
                      answer);
    if (order->nodes[order->tree->nodes[a].parent].flags & ORDER_NODE_HAZY)
        answer->assumed = true;
    return r;
}

int order_tree_compare(const struct order_tree *order, uint32_t a, uint32_t b,
                       struct order_answer *ret_answer)
{
    size_t at_a = position_of(order, a), at_b = position_of(order, b);
    struct order_answer answer = {.relation = ORDER_UNKNOWN, .loop = FLOW_NONE};
    uint32_t node = 0, in_a, in_b;
    int r = 0;

    do {
        in_a = child_at(order->tree, node, at_a);
        in_b = child_at(order->tree, node, at_b);
        node = in_a;
    } while (in_a == in_b && in_a != PREFIX_NONE);
    if (in_a == in_b)
        answer.relation = ORDER_SAME;
    else if (in_a != PREFIX_NONE && in_b != PREFIX_NONE)
        r = compare_children(order, in_a, in_b, &answer);
    if (r == 0)
        *ret_answer = answer;
    return r;
}
