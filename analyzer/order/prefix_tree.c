/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/order/prefix_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "base/array.h"

/* What makes places the same, at the finer granularities with more of it. */
struct place_key {
    uint64_t entry, address;
    uint32_t image, function, line, flags;
};

struct known_key {
    struct place_key key;
    uint32_t number;
    UT_hash_handle hh;
};

/* Of each class, the child that it has become in the expansion that is going on. */
struct prefix_scratch {
    struct {
        uint32_t round, child;
    } * by_class;
    size_t class_capacity;
    uint32_t round;
    uint32_t *classes; /* of the threads of the node */
    uint32_t *moved;
};

/* ---------------------------------------------------------------------------------------------- keys */

static void make_key(const struct sample_place *place, enum prefix_granularity granularity,
                     struct place_key *key)
{
    memset(key, 0, sizeof(*key));
    key->image = place->image;
    key->function = place->function;
    key->entry = place->entry;
    key->flags = place->flags & SAMPLE_INLINED;
    if (granularity == PREFIX_FUNCTION)
        return;
    key->line = place->line;
    if (granularity == PREFIX_LINE && place->line)
        return;
    key->address = place->address;
    key->flags = place->flags;
}

static void free_keys(struct known_key *known)
{
    struct known_key *key, *next;

    HASH_ITER (hh, known, key, next) {
        HASH_DEL(known, key);
        free(key);
    }
}

static int add_key(struct known_key **known, const struct place_key *key, uint32_t number)
{
    struct known_key *added = calloc(1, sizeof(*added));

    if (!added)
        return -ENOMEM;
    added->key = *key;
    added->number = number;
    HASH_ADD(hh, *known, key, sizeof(added->key), added);
    if (added->hh.tbl)
        return 0;
    free(added);
    return -ENOMEM;
}

static int find_keys(struct prefix_tree *tree, enum prefix_granularity granularity)
{
    struct known_key *known = NULL, *found;
    struct place_key key;
    int r = 0;

    for (size_t i = 0; r == 0 && i < tree->set->place_count; i++) {
        make_key(&tree->set->places[i], granularity, &key);
        HASH_FIND(hh, known, &key, sizeof(key), found);
        tree->keys[i] = found ? found->number : tree->key_count;
        if (!found)
            r = add_key(&known, &key, tree->key_count++);
    }
    free_keys(known);
    return r;
}

/* ---------------------------------------------------------------------------------------------- life */

int prefix_tree_new(const struct sample_set *set, enum prefix_granularity granularity,
                    struct prefix_tree **ret_tree)
{
    AUTO_PREFIX_TREE struct prefix_tree *tree = calloc(1, sizeof(*tree));

    if (!tree)
        return -ENOMEM;
    tree->set = set;
    tree->threads = calloc(set->thread_count + 1, sizeof(*tree->threads));
    tree->keys = calloc(set->place_count + 1, sizeof(*tree->keys));
    tree->scratch = calloc(1, sizeof(*tree->scratch));
    if (!tree->threads || !tree->keys || !tree->scratch ||
        array_reserve(&tree->nodes, &tree->node_capacity, 1) < 0)
        return -ENOMEM;
    tree->scratch->classes = calloc(set->thread_count + 1, sizeof(*tree->scratch->classes));
    tree->scratch->moved = calloc(set->thread_count + 1, sizeof(*tree->scratch->moved));
    if (!tree->scratch->classes || !tree->scratch->moved || find_keys(tree, granularity) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < set->thread_count; i++)
        tree->threads[i] = (uint32_t)i;
    tree->nodes[tree->node_count++] = (struct prefix_node){.parent = PREFIX_NONE,
                                                           .first_child = PREFIX_NONE,
                                                           .depth = PREFIX_NONE,
                                                           .place = PREFIX_NONE,
                                                           .class = PREFIX_NONE,
                                                           .count = set->thread_count};
    *ret_tree = take_pointer(tree);
    return 0;
}

void prefix_tree_free(struct prefix_tree *tree)
{
    if (!tree)
        return;
    if (tree->scratch) {
        free(tree->scratch->by_class);
        free(tree->scratch->classes);
        free(tree->scratch->moved);
    }
    free(tree->scratch);
    free(tree->nodes);
    free(tree->threads);
    free(tree->keys);
    free(tree);
}

/* ---------------------------------------------------------------------------------------------- expanding */

/* The child for a class: made when it is new in this round. `child_count` of the node counts them. */
static int child_of(struct prefix_tree *tree, uint32_t node, uint32_t class, uint32_t thread,
                    uint32_t *ret_child)
{
    struct prefix_scratch *scratch = tree->scratch;
    size_t old = scratch->class_capacity;
    uint32_t depth = tree->nodes[node].depth + 1;

    if (array_reserve(&scratch->by_class, &scratch->class_capacity, (size_t) class + 1) < 0)
        return -ENOMEM;
    if (scratch->class_capacity > old)
        memset(scratch->by_class + old, 0, (scratch->class_capacity - old) * sizeof(*scratch->by_class));
    if (scratch->by_class[class].round != scratch->round) {
        if (array_reserve(&tree->nodes, &tree->node_capacity, tree->node_count + 1) < 0)
            return -ENOMEM;
        scratch->by_class[class].round = scratch->round;
        scratch->by_class[class].child = (uint32_t)tree->node_count;
        tree->nodes[tree->node_count++] =
            (struct prefix_node){.parent = node,
                                 .first_child = PREFIX_NONE,
                                 .depth = depth,
                                 .class = class,
                                 .place = tree->set->stacks[tree->set->threads[thread].first + depth]};
        tree->nodes[node].child_count++;
    }
    *ret_child = scratch->by_class[class].child;
    return 0;
}

static int class_of(const struct prefix_tree *tree, const struct prefix_classes *classes, uint32_t thread,
                    uint32_t frame, uint32_t *ret_class)
{
    if (classes)
        return classes->classify(classes->context, thread, frame, ret_class);
    *ret_class = tree->keys[tree->set->stacks[tree->set->threads[thread].first + frame]];
    return 0;
}

/* Finds the child of each thread (PREFIX_NONE: its stack ends here) and counts them. */
static int count_children(struct prefix_tree *tree, uint32_t node, const struct prefix_classes *classes)
{
    size_t first = tree->nodes[node].first, count = tree->nodes[node].count;
    uint32_t frame = tree->nodes[node].depth + 1, class = 0, child = 0;

    for (size_t i = 0; i < count; i++) {
        uint32_t thread = tree->threads[first + i];
        int r;

        if (tree->set->threads[thread].count <= frame) {
            tree->scratch->classes[i] = PREFIX_NONE;
            tree->nodes[node].ends++;
            continue;
        }
        r = class_of(tree, classes, thread, frame, &class);
        if (r == 0)
            r = child_of(tree, node, class, thread, &child);
        if (r < 0)
            return r;
        tree->scratch->classes[i] = child;
        tree->nodes[child].count++;
    }
    return 0;
}

/* Threads that end here first, then those of each child, in the order in which they were. */
static void move_threads(struct prefix_tree *tree, uint32_t node)
{
    const struct prefix_node *parent = &tree->nodes[node];
    size_t at = parent->first + parent->ends, ended = 0;

    for (uint32_t i = 0; i < parent->child_count; i++) {
        struct prefix_node *child = &tree->nodes[parent->first_child + i];

        child->first = at;
        at += child->count;
        child->count = 0;
    }
    memcpy(tree->scratch->moved, tree->threads + parent->first, parent->count * sizeof(*tree->threads));
    for (size_t i = 0; i < parent->count; i++) {
        uint32_t child = tree->scratch->classes[i];
        size_t to = child == PREFIX_NONE ? parent->first + ended++
                                         : tree->nodes[child].first + tree->nodes[child].count++;

        tree->threads[to] = tree->scratch->moved[i];
    }
}

int prefix_tree_expand(struct prefix_tree *tree, uint32_t node, const struct prefix_classes *classes)
{
    size_t count = tree->node_count;
    int r;

    if (tree->nodes[node].first_child != PREFIX_NONE)
        return 0;
    tree->scratch->round++;
    r = count_children(tree, node, classes);
    if (r < 0) { /* as it was before */
        tree->node_count = count;
        tree->nodes[node].child_count = 0;
        tree->nodes[node].ends = 0;
        return r;
    }
    tree->nodes[node].first_child = (uint32_t)count;
    move_threads(tree, node);
    return 0;
}

int prefix_tree_expand_all(struct prefix_tree *tree, uint32_t node)
{
    size_t next = tree->node_count;
    int r = prefix_tree_expand(tree, node, NULL);

    for (; r == 0 && next < tree->node_count; next++)
        r = prefix_tree_expand(tree, (uint32_t)next, NULL);
    return r;
}
