/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A goroutine's hash is made of all that makes it alike to another, and of the hashes of its children in
 * their order. Children have higher goids than their parents only within a batch of the runtime's, so the
 * order of the work comes from the tree and not from the numbers.
 */
#include "analyzer/go/tree.h"

#include <errno.h>
#include <stdlib.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "base/array.h"

struct go_last {
    uint64_t goroutine;
    uint32_t site;
    uint8_t operation;
    UT_hash_handle hh;
};

void go_tree_release(struct go_tree *tree)
{
    struct go_last *last, *next;

    HASH_ITER (hh, tree->last, last, next) {
        HASH_DEL(tree->last, last);
        free(last);
    }
}

static const struct go_last *find_last(const struct go_tree *tree, uint64_t goroutine)
{
    struct go_last *last;

    HASH_FIND(hh, tree->last, &goroutine, sizeof(goroutine), last);
    return last;
}

int go_tree_action(void *context, const struct go_goroutine *goroutine, const struct go_action *action)
{
    struct go_tree *tree = context;
    struct go_last *last;

    if (action->flags & GO_FLAG_INNER)
        return 0;
    HASH_FIND(hh, tree->last, &goroutine->goroutine, sizeof(goroutine->goroutine), last);
    if (!last) {
        last = calloc(1, sizeof(*last));
        if (!last)
            return -ENOMEM;
        last->goroutine = goroutine->goroutine;
        HASH_ADD(hh, tree->last, goroutine, sizeof(last->goroutine), last);
        if (!last->hh.tbl) {
            free(last);
            return -ENOMEM;
        }
    }
    last->operation = action->operation;
    last->site = action->site;
    return 0;
}

/* ------------------------------------------------------------------------------------------ the nodes */

enum { NONE = -1 };

struct entry {
    const struct go_goroutine *goroutine;
    ssize_t parent, first_child, last_child, next; /* indices; NONE */
    uint64_t hash;
    uint64_t count; /* that it stands for; 0: another one stands for it */
};

struct walk {
    const struct go_tree *tree;
    const struct go_tree_options *options;
    struct entry *entries; /* by goid */
    size_t count, capacity;
    size_t *order; /* indices, parents before children */
};

static int add_entry(void *context, const struct go_goroutine *goroutine)
{
    struct walk *walk = context;

    if (goroutine->system && !walk->options->system)
        return 0;
    if (array_reserve(&walk->entries, &walk->capacity, walk->count + 1) < 0)
        return -ENOMEM;
    walk->entries[walk->count++] = (struct entry){goroutine, NONE, NONE, NONE, NONE, 0, 1};
    return 0;
}

static int compare_entry(const void *key, const void *item)
{
    uint64_t goroutine = *(const uint64_t *)key, other = ((const struct entry *)item)->goroutine->goroutine;

    return (goroutine > other) - (goroutine < other);
}

static ssize_t find_entry(const struct walk *walk, uint64_t goroutine)
{
    const struct entry *found;

    if (!walk->count)
        return NONE;
    found = bsearch(&goroutine, walk->entries, walk->count, sizeof(*walk->entries), compare_entry);

    return found ? found - walk->entries : NONE;
}

/* Links children with their parents, and puts all in an order in which parents come first. */
static void link_entries(struct walk *walk)
{
    size_t done = 0, end = 0;

    for (size_t i = 0; i < walk->count; i++) {
        struct entry *entry = &walk->entries[i];

        entry->parent = entry->goroutine->parent ? find_entry(walk, entry->goroutine->parent) : NONE;
        if (entry->parent != NONE && walk->entries[entry->parent].goroutine->born >= entry->goroutine->born)
            entry->parent = NONE; /* the events contradict themselves */
        if (entry->parent == NONE) {
            walk->order[end++] = i;
            continue;
        }
        if (walk->entries[entry->parent].last_child == NONE)
            walk->entries[entry->parent].first_child = (ssize_t)i;
        else
            walk->entries[walk->entries[entry->parent].last_child].next = (ssize_t)i;
        walk->entries[entry->parent].last_child = (ssize_t)i;
    }
    for (; done < end; done++)
        for (ssize_t child = walk->entries[walk->order[done]].first_child; child != NONE;
             child = walk->entries[child].next)
            walk->order[end++] = (size_t)child;
}

/* ------------------------------------------------------------------------------------------ what is alike */

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}

static uint64_t hash_of(const struct walk *walk, const struct entry *entry)
{
    const struct go_goroutine *goroutine = entry->goroutine;
    const struct go_last *last = find_last(walk->tree, goroutine->goroutine);
    uint64_t hash = mix(goroutine->created_at, goroutine->function);

    hash = mix(hash, (uint64_t)goroutine->state * 4 + goroutine->system);
    hash = mix(hash, (uint64_t)goroutine->wait_reason);
    hash = mix(hash, last ? (uint64_t)last->site << 8 | last->operation : 0);
    if (goroutine->held_count)
        hash = mix(hash, goroutine->goroutine); /* not alike to anybody */
    for (ssize_t child = entry->first_child; child != NONE; child = walk->entries[child].next)
        hash = mix(hash, walk->entries[child].hash);
    return hash;
}

struct sibling {
    uint64_t hash;
    size_t entry;
};

static int compare_siblings(const void *left, const void *right)
{
    const struct sibling *a = left, *b = right;

    if (a->hash != b->hash)
        return a->hash > b->hash ? 1 : -1;
    return (a->entry > b->entry) - (a->entry < b->entry);
}

/* Of those that are alike, the first stands for all. */
static void fold(struct walk *walk, struct sibling *siblings, size_t count)
{
    size_t first = 0;

    if (count > 1)
        qsort(siblings, count, sizeof(*siblings), compare_siblings);
    for (size_t i = 1; i < count; i++) {
        if (siblings[i].hash != siblings[first].hash) {
            first = i;
            continue;
        }
        walk->entries[siblings[i].entry].count = 0;
        walk->entries[siblings[first].entry].count++;
    }
}

/* Hashes all, and folds the children of each, from the leaves up; then the roots. */
static void fold_all(struct walk *walk, struct sibling *siblings)
{
    size_t roots = 0;

    for (size_t i = walk->count; i-- > 0;) {
        struct entry *entry = &walk->entries[walk->order[i]];
        size_t count = 0;

        entry->hash = hash_of(walk, entry);
        for (ssize_t child = entry->first_child; child != NONE; child = walk->entries[child].next)
            siblings[count++] = (struct sibling){walk->entries[child].hash, (size_t)child};
        fold(walk, siblings, count);
    }
    for (; roots < walk->count && walk->entries[walk->order[roots]].parent == NONE; roots++)
        siblings[roots] = (struct sibling){walk->entries[walk->order[roots]].hash, walk->order[roots]};
    fold(walk, siblings, roots);
}

/* ------------------------------------------------------------------------------------------ walking */

static struct go_node make_node(const struct walk *walk, const struct entry *entry, size_t depth)
{
    const struct go_last *last = find_last(walk->tree, entry->goroutine->goroutine);

    return (struct go_node){.goroutine = entry->goroutine,
                            .depth = depth,
                            .count = entry->count,
                            .has_last = last != NULL,
                            .last_operation = last ? last->operation : 0,
                            .last_site = last ? last->site : 0};
}

/* From one root down; without recursion, since a tree may be as deep as it has goroutines. */
static int visit_below(const struct walk *walk, ssize_t root,
                       int (*visit)(void *context, const struct go_node *node), void *context)
{
    ssize_t at = root;
    size_t depth = 0;

    while (at != NONE) {
        const struct entry *entry = &walk->entries[at];
        bool shown = entry->count > 0;

        if (shown) {
            struct go_node node = make_node(walk, entry, depth);
            int r = visit(context, &node);

            if (r)
                return r;
        }
        if (shown && entry->first_child != NONE) {
            at = entry->first_child;
            depth++;
            continue;
        }
        while (at != root && walk->entries[at].next == NONE) {
            at = walk->entries[at].parent;
            depth--;
        }
        at = at == root ? NONE : walk->entries[at].next;
    }
    return 0;
}

static int walk_all(struct walk *walk, int (*visit)(void *context, const struct go_node *node), void *context)
{
    struct sibling *siblings = calloc(walk->count + 1, sizeof(*siblings));
    int r = 0;

    walk->order = calloc(walk->count + 1, sizeof(*walk->order));
    if (!siblings || !walk->order)
        r = -ENOMEM;
    if (r == 0) {
        link_entries(walk);
        if (!walk->options->unfolded)
            fold_all(walk, siblings);
    }
    for (size_t i = 0; r == 0 && i < walk->count; i++)
        if (walk->entries[i].parent == NONE)
            r = visit_below(walk, (ssize_t)i, visit, context);
    free(siblings);
    free(walk->order);
    return r;
}

int go_tree_walk(const struct go_tree *tree, struct go_replay *replay, const struct go_tree_options *options,
                 int (*visit)(void *context, const struct go_node *node), void *context)
{
    struct walk walk = {.tree = tree, .options = options};
    int r = go_replay_each(replay, add_entry, &walk);

    if (r == 0)
        r = walk_all(&walk, visit, context);
    free(walk.entries);
    return r;
}
