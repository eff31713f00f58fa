/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The prefix tree of a sample with its branches in order of progress.
 *
 * Refined are, as in Ahn et al. section 4.3, the nodes from the root to the first branching, the children of
 * which get their temporal ranks; and from there on those that the question leads to: the least progressed
 * class, or, where nothing tells which that is, all of them. Only for nodes that are refined is code read and
 * are values of threads asked for, so the cost follows the question and not the number of threads. It ends
 * where a thread's own program ends: which place of a library threads wait in, that all were called from one
 * place, says nothing about progress. Threads that are at the same point, but not in the same iteration of a
 * loop, are children of their own.
 *
 * Compared are children that stand in the same function, entered by the same call. There is no order between
 * different functions (threads that began with different ones, a call through a pointer), behind calls that
 * may be missing (gaps, tail calls), and where the code is not understood: such nodes are
 * ORDER_NODE_UNORDERED.
 */
#ifndef TRACECTL_ANALYZER_ORDER_ORDER_TREE_H
#define TRACECTL_ANALYZER_ORDER_ORDER_TREE_H

#include "analyzer/order/prefix_tree.h"
#include "analyzer/order/relative_progress.h"

enum order_node_flags {
    ORDER_NODE_RANKED = 1 << 0,    /* it was compared with its siblings */
    ORDER_NODE_LEAST = 1 << 1,     /* ranked, and behind all its siblings */
    ORDER_NODE_MOST = 1 << 2,      /* ranked, and ahead of all its siblings */
    ORDER_NODE_UNORDERED = 1 << 3, /* to at least one of its siblings there is no order */
    ORDER_NODE_ASSUMED = 1 << 4,   /* its rank holds only if iterations that are not known are equal */
    /* Its threads have come here by the same calls, but perhaps not in the same round of all that repeats: an
     * iteration is not known, or the code is not understood, here or in a node above. What is said of nodes
     * below is assumed. */
    ORDER_NODE_HAZY = 1 << 5,
    /* Of its threads nobody knows what they began with (stacks that are damaged, or cannot be followed), of
     * at least as many others that is known: a child of the root. There is no order, but with a program that
     * overwrites its own stack this is who did it; Ahn et al. (section 5.1) count who alone is on a branch of
     * its own with the least progressed. */
    ORDER_NODE_APART = 1 << 6,
};

struct order_node {
    unsigned flags; /* enum order_node_flags */
    uint32_t rank;  /* 0: no sibling is behind it */
    uint32_t point; /* of order_tree.points, or PREFIX_NONE: its code was not looked at */
};

/* How the iterations of a thread become known. Both may be missing. */
struct order_source {
    const struct frame_source *frames; /* values of registers and words of the frame */
    void *context;
    /* Of a recorded run: the finished iterations of the loop at `depth` (1: the outermost) around the place
     * of a frame. -ENOENT: not known; -ENOMEM. */
    int (*iterations)(void *context, size_t thread, size_t frame, uint32_t depth, uint64_t *ret_count);
};

/* A variable that was read to know an iteration. */
struct order_variable {
    const char *name; /* NULL: none is known for it */
    int64_t value;
};

struct order_tree {
    const struct sample_set *set;
    struct order_code *code;
    struct prefix_tree *tree;
    struct order_node *nodes; /* of tree->nodes, in the same order */
    size_t node_capacity;
    struct order_point *points;
    struct order_variable (*variables)[ORDER_LOOPS_MAX]; /* of the points, in the same order */
    size_t point_count, point_capacity, variable_capacity;
    uint32_t decided; /* the node whose children tell who is behind: of those, one is ORDER_NODE_LEAST; or
                         PREFIX_NONE */
    uint32_t last;    /* the node that is behind all others: the one of `decided`, or below it one of which
                         the same can be told among its threads; PREFIX_NONE: nobody is */
    size_t values_read;
    struct order_classes *classes; /* private */
};

/* Merges and orders the threads of `set`; `everything`: refine all nodes, those of libraries too. `source` is
 * asked while this runs only; the set is borrowed. -ENOTSUP: no disassembler; -ENOMEM. */
int order_tree_new(const struct sample_set *set, const struct order_source *source, bool everything,
                   struct order_tree **ret_tree, struct error *err);
void order_tree_free(struct order_tree *order);

DEFINE_CLEANUP(cleanup_order_tree, struct order_tree *, order_tree_free)
#define AUTO_ORDER_TREE CLEANUP(cleanup_order_tree)

/* Whether threads of the set may be expected to do the same: they are of one process, or of a job with ranks. The
 * processes of a service (a server and its workers) have different tasks: none of them is behind. */
bool order_comparable(const struct sample_set *set);

/* How two threads of the set (by their numbers) relate: where their paths part, as order_compare() says.
 * ORDER_SAME: they do not part; ORDER_UNKNOWN too where the tree is not refined. -ENOMEM, or 0. */
int order_tree_compare(const struct order_tree *order, uint32_t a, uint32_t b,
                       struct order_answer *ret_answer);

/* The first node whose threads part, those that are apart aside; the last one, where they never do. */
uint32_t order_tree_branching(const struct order_tree *order);

/* The place that a node stands for; not for the root. */
static inline const struct sample_place *order_tree_place(const struct order_tree *order, uint32_t node)
{
    return &order->set->places[order->tree->nodes[node].place];
}

/* The innermost iteration that is known of a node's threads; NULL: none is, or there is no loop. */
const struct order_iteration *order_tree_iteration(const struct order_tree *order, uint32_t node,
                                                   const struct order_variable **ret_variable);

#endif
