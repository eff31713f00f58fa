/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The goroutine tree: who made whom, with what each did last. Siblings are alike, and one node with a count,
 * when they were made at the same place, begin with the same function, are in the same state at the same
 * operation, hold nothing, and what is below them is alike.
 */
#ifndef TRACECTL_ANALYZER_GO_TREE_H
#define TRACECTL_ANALYZER_GO_TREE_H

#include "analyzer/go/replay.h"

struct go_last;

/* A tree of zeros is an empty one. */
struct go_tree {
    struct go_last *last; /* the last operation of each goroutine */
};
void go_tree_release(struct go_tree *tree);

/* An on_action of a replay; `tree` is a struct go_tree. */
int go_tree_action(void *tree, const struct go_goroutine *goroutine, const struct go_action *action);

struct go_node {
    const struct go_goroutine *goroutine; /* the first of those that are alike */
    size_t depth;
    uint64_t count; /* goroutines that this node stands for */
    bool has_last;
    uint8_t last_operation; /* enum go_op */
    uint32_t last_site;
};

struct go_tree_options {
    bool system;   /* those of the runtime, too */
    bool unfolded; /* each on its own */
};

/* Calls `visit` for each node, a parent before its children, siblings by goid, until it returns other than 0,
 * which is returned. Those whose maker is not known are roots. Fails with -ENOMEM. */
int go_tree_walk(const struct go_tree *tree, struct go_replay *replay, const struct go_tree_options *options,
                 int (*visit)(void *context, const struct go_node *node), void *context);

#endif
