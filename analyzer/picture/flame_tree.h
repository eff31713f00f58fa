/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The merged call paths of one or two runs: what a flame graph draws. */
#ifndef TRACECTL_ANALYZER_PICTURE_FLAME_TREE_H
#define TRACECTL_ANALYZER_PICTURE_FLAME_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/hash_index.h"
#include "store/export/stack_tree.h"

/* Which run a value is of. */
enum flame_side { FLAME_BASELINE, FLAME_CANDIDATE, FLAME_SIDES };

struct flame_node {
    const char *name;
    uint32_t parent;         /* a parent comes before its children; that of the root, node 0, is itself */
    uint32_t first, sibling; /* children, by name: the first one; the next child of the parent; 0: none */
    uint64_t total[FLAME_SIDES];
};

struct flame_tree {
    struct flame_node *nodes;
    size_t count;
    bool shortened; /* paths were added to their last frame that there was room for */

    /* Private. */
    struct hash_index index; /* by parent and name */
    uint32_t *order;         /* of the nodes by name, for flame_tree_finish() */
    void *names;             /* of tsearch() */
    const char **frames;     /* of the run being added: names by frame */
};

/* 0 or -ENOMEM. Free with flame_tree_release, after a failure too. */
int flame_tree_init(struct flame_tree *tree);
void flame_tree_release(struct flame_tree *tree);

/* Adds all paths of a run. Fails as export_write() does. */
int flame_tree_add(struct flame_tree *tree, enum flame_side side, struct tracestore *store,
                   const struct tracestore_run *run, const struct export_options *options,
                   struct export_totals *ret_totals, struct error *err);

/* When all is added: sums up, and puts children in order. */
void flame_tree_finish(struct flame_tree *tree);

#endif
