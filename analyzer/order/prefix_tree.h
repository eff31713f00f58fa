/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The stacks of a sample merged from the outermost frame on: threads with the same path share nodes, and
 * those at the same node are a class (STAT: Arnold et al., "Stack Trace Analysis for Large Scale Debugging";
 * Ahn et al., section 2).
 *
 * What counts as the same is a matter of granularity: the function; function and line; or the point in the
 * code. Nodes get their children when they are expanded, so that an analysis may stop where its question is
 * answered, and may tell threads at the same point apart (struct prefix_classes). Threads lie in one array,
 * those of a node side by side and ascending, so that merging is one pass over all frames.
 */
#ifndef TRACECTL_ANALYZER_ORDER_PREFIX_TREE_H
#define TRACECTL_ANALYZER_ORDER_PREFIX_TREE_H

#include "analyzer/order/sample.h"

#define PREFIX_NONE UINT32_MAX

enum prefix_granularity {
    PREFIX_FUNCTION,
    PREFIX_LINE, /* function and line; where the line is not known, the point */
    PREFIX_POINT,
};

struct prefix_node {
    uint32_t parent;      /* PREFIX_NONE of the root */
    uint32_t first_child; /* children stand side by side; PREFIX_NONE: not expanded */
    uint32_t child_count;
    uint32_t depth; /* frame that it stands for: 0 the outermost; of the root, PREFIX_NONE */
    uint32_t place; /* that of its first thread; PREFIX_NONE of the root */
    uint32_t class; /* what the threads have in common: see struct prefix_classes */
    size_t first;   /* of its threads in prefix_tree.threads */
    size_t count;
    size_t ends; /* so many of them, the first ones, have no further frame; known when it is expanded */
};

struct prefix_tree {
    const struct sample_set *set;
    struct prefix_node *nodes; /* the root is 0 */
    size_t node_count, node_capacity;
    uint32_t *threads; /* numbers of threads */
    uint32_t *keys;    /* of each place: equal for those that are the same at this granularity */
    uint32_t key_count;
    struct prefix_scratch *scratch; /* private */
};

/* How threads at the same place are told apart: the class of a thread's frame, a small number that threads
 * share only if they stand at the same place (or at places with the same key). -ENOMEM and other errors end
 * the expansion. */
struct prefix_classes {
    void *context;
    int (*classify)(void *context, size_t thread, size_t frame, uint32_t *ret_class);
};

/* A tree of the root alone, with all threads of `set`, which is borrowed. -ENOMEM. */
int prefix_tree_new(const struct sample_set *set, enum prefix_granularity granularity,
                    struct prefix_tree **ret_tree);
void prefix_tree_free(struct prefix_tree *tree);

DEFINE_CLEANUP(cleanup_prefix_tree, struct prefix_tree *, prefix_tree_free)
#define AUTO_PREFIX_TREE CLEANUP(cleanup_prefix_tree)

/* Gives the node its children, one for each class of next frames; by key where `classes` is NULL. Nothing
 * happens when it has them. Pointers to nodes are no longer valid afterwards. -ENOMEM, or what `classes`
 * says. */
int prefix_tree_expand(struct prefix_tree *tree, uint32_t node, const struct prefix_classes *classes);

/* Expands the node, which has no children yet, and everything below it, by key. -ENOMEM. */
int prefix_tree_expand_all(struct prefix_tree *tree, uint32_t node);

/* Whose frames the node stands for: "12:[0-3,8]" of ranks, where every thread of the node has one of its own,
 * else of threads "3:[0.0-0.2]", with no more than `most` ranges, then "...". -ENOMEM; the caller frees
 * *ret_label. */
int prefix_tree_label(const struct prefix_tree *tree, uint32_t node, size_t most, char **ret_label);

#endif
