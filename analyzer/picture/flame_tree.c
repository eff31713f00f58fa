/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/picture/flame_tree.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/picture/flame_graph.h"
#include "base/error.h"
#include "base/text.h"

/* What flame_tree_add gives to the walk of a run. */
struct adding {
    struct flame_tree *tree;
    enum flame_side side;
};

/* ------------------------------------------------------------------------------------------ names */

static int compare_names(const void *left, const void *right)
{
    return strcmp(left, right);
}

/* The one copy of a name; NULL: out of memory. */
static const char *intern(struct flame_tree *tree, const char *name)
{
    char **found = tfind(name, &tree->names, compare_names);
    char *copy;

    if (found)
        return *found;
    copy = strdup(name);
    if (copy && !tsearch(copy, &tree->names, compare_names)) {
        free(copy);
        return NULL;
    }
    return copy;
}

/* ------------------------------------------------------------------------------------------ nodes */

static uint64_t hash(uint32_t parent, const char *name)
{
    return ((uint64_t)parent << 40) ^ (uint64_t)(uintptr_t)name;
}

/* The child of that name; 0: there is none and no room for it. */
static uint32_t child(struct flame_tree *tree, uint32_t parent, const char *name)
{
    struct hash_walk walk = hash_index_walk(&tree->index, hash(parent, name));
    uint32_t number;

    while (hash_walk_next(&walk, &number))
        if (tree->nodes[number].parent == parent && tree->nodes[number].name == name)
            return number;
    if (tree->count == FLAME_NODES_MAX)
        return 0;
    number = (uint32_t)tree->count++;
    tree->nodes[number] = (struct flame_node){.name = name, .parent = parent};
    hash_index_add(&tree->index, hash(parent, name), number); /* flame_tree_init() has made room */
    return number;
}

int flame_tree_init(struct flame_tree *tree)
{
    *tree = (struct flame_tree){
        .nodes = malloc(FLAME_NODES_MAX * sizeof(*tree->nodes)),
        .order = malloc(FLAME_NODES_MAX * sizeof(*tree->order)),
        .count = 1,
    };
    if (!tree->nodes || !tree->order || hash_index_reserve(&tree->index, FLAME_NODES_MAX))
        return -ENOMEM;
    tree->nodes[0] = (struct flame_node){.name = "all"};
    return 0;
}

void flame_tree_release(struct flame_tree *tree)
{
    tdestroy(tree->names, free);
    free(tree->nodes);
    free(tree->order);
    hash_index_release(&tree->index);
    *tree = (struct flame_tree){0};
}

/* ------------------------------------------------------------------------------------------ a run */

static int intern_frames(struct stack_tree *stacks)
{
    struct adding *adding = stacks->context;
    size_t count = stack_frame_count(stacks);

    adding->tree->frames = calloc(count, sizeof(*adding->tree->frames));
    for (size_t i = 0; adding->tree->frames && i < count; i++) {
        adding->tree->frames[i] = intern(adding->tree, stack_frame_name(stacks, (uint32_t)i));
        if (!adding->tree->frames[i])
            return error_no_memory(stacks->run.err);
    }
    return adding->tree->frames ? 0 : error_no_memory(stacks->run.err);
}

/* The root of each thread's tree is the root of all. */
static int add_stacks(struct stack_tree *stacks)
{
    struct adding *adding = stacks->context;
    struct flame_tree *tree = adding->tree;
    uint32_t frames[STACK_FRAMES_MAX];

    for (size_t i = 0; i < stacks->node_count; i++) {
        size_t count = stacks->nodes[i].value ? stack_path(stacks, &stacks->nodes[i], frames) : 0;
        uint32_t at = 0;

        for (size_t depth = 1; depth < count; depth++) {
            uint32_t below = child(tree, at, tree->frames[frames[depth]]);

            tree->shortened |= !below;
            if (!below)
                break;
            at = below;
        }
        tree->nodes[at].total[adding->side] += stacks->nodes[i].value;
    }
    return 0;
}

int flame_tree_add(struct flame_tree *tree, enum flame_side side, struct tracestore *store,
                   const struct tracestore_run *run, const struct export_options *options,
                   struct export_totals *ret_totals, struct error *err)
{
    static const struct stack_format format = {
        .make_name = text_printable, .begin = intern_frames, .tree = add_stacks};
    struct adding adding = {tree, side};
    int r = stack_tree_export(&format, &adding, store, run, options, NULL, ret_totals, err);

    free(tree->frames);
    tree->frames = NULL;
    return r;
}

/* ------------------------------------------------------------------------------------------ the end */

static int compare_nodes(const void *left, const void *right, void *context)
{
    const struct flame_node *nodes = context;
    const struct flame_node *a = &nodes[*(const uint32_t *)left], *b = &nodes[*(const uint32_t *)right];

    return strcmp(a->name, b->name);
}

void flame_tree_finish(struct flame_tree *tree)
{
    uint32_t *order = tree->order;

    for (uint32_t i = (uint32_t)tree->count; i-- > 1;)
        for (int side = 0; side < FLAME_SIDES; side++)
            tree->nodes[tree->nodes[i].parent].total[side] += tree->nodes[i].total[side];
    for (uint32_t i = 0; i < tree->count; i++)
        order[i] = i;
    qsort_r(order + 1, tree->count - 1, sizeof(*order), compare_nodes, tree->nodes);
    for (size_t i = tree->count; i-- > 1;) {
        struct flame_node *node = &tree->nodes[order[i]], *parent = &tree->nodes[node->parent];

        node->sibling = parent->first;
        parent->first = order[i];
    }
}
