/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The call paths of a thread as a tree: what folded stacks, flame graphs and profiles are made of. The frame
 * at the root is the thread.
 *
 * Memory is bounded. When the tree has STACK_NODES_MAX nodes it is given to the format (stack_format.tree)
 * and begun anew with the calls that are open, so that a path may come several times: formats add up. Calls
 * deeper than STACK_DEPTH_MAX are one frame "[deeper]".
 */
#ifndef TRACESTORE_STACK_TREE_H
#define TRACESTORE_STACK_TREE_H

#include <stdint.h>

#include "store/export/export_run.h"

#define STACK_NODES_MAX 500000u
#define STACK_DEPTH_MAX 1000u
/* A path has at most the thread, STACK_DEPTH_MAX functions and two special frames. */
#define STACK_FRAMES_MAX (STACK_DEPTH_MAX + 4)

struct stack_node {
    uint32_t parent; /* that of the root is itself: node 0; a parent comes before its children */
    uint32_t frame;  /* stack_frame_name() */
    uint64_t calls;  /* of the innermost frame, on this path */
    uint64_t value;  /* of the innermost frame by itself: calls or nanoseconds, as the options' weight says */
};

struct stack_tree;

struct stack_format {
    /* A name as a frame, in memory from malloc; NULL: out of memory. */
    char *(*make_name)(const char *name);
    /* What comes before and behind all trees; NULL: nothing does. 0, or a negative errno with run.err filled.
     */
    int (*begin)(struct stack_tree *tree);
    int (*end)(struct stack_tree *tree);
    /* Writes tree->nodes. */
    int (*tree)(struct stack_tree *tree);
    /* What has no place in a stream; NULL: the format has none. */
    int (*gap)(struct stack_tree *tree, const struct export_gap *gap);
};

struct stack_tree {
    struct export_run run;
    const struct stack_format *format;
    void *context; /* the format's own */
    const struct tracestore_thread *thread;
    char *title; /* of the thread, as a frame */
    struct stack_node *nodes;
    size_t node_count;

    /* Private. */
    char **names;
    uint32_t *table; /* node + 1 by (parent, frame), 0: free */
    uint32_t *stack; /* nodes of the open calls; [0] is the thread */
    size_t depth;
    size_t beyond;    /* open calls deeper than STACK_DEPTH_MAX */
    uint32_t current; /* the node that time goes to */
    uint64_t last_ns;
    bool bare;
};

/* Walks the run's threads, or the one that the options name, and gives each tree to the format. As
 * export_write() fails. */
int stack_tree_export(const struct stack_format *format, void *context, struct tracestore *store,
                      const struct tracestore_run *run, const struct export_options *options, FILE *out,
                      struct export_totals *ret_totals, struct error *err);

/* Frames are numbered: the run's functions by their index, the one that stands for unknown ones, "[lost]",
 * "[deeper]", the thread. So many come before the thread. */
#define STACK_SPECIAL_FRAMES 2
size_t stack_frame_count(const struct stack_tree *tree);

/* The frame's name, as format.make_name made it; lives as long as the tree. */
const char *stack_frame_name(const struct stack_tree *tree, uint32_t frame);

/* The function of a frame; NULL: it is a special one. */
const struct export_function *stack_frame_function(const struct stack_tree *tree, uint32_t frame);

/* The frames of a node from the root on. Returns their number, at most STACK_FRAMES_MAX. */
size_t stack_path(const struct stack_tree *tree, const struct stack_node *node, uint32_t *frames);

#endif
