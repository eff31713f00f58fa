/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/analysis/call_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

struct node {
    struct node *next, *previous; /* siblings */
    struct node *first, *last;    /* children: what a call called, the body of a loop */
    size_t children;
    enum call_tree_kind kind;
    uint64_t hash; /* of a call that has ended, or a loop's body */
    uint64_t count;
    const char *cause;
    uint32_t function;
    enum call_mark mark;
    bool assumed;
};

/* An open call. */
struct frame {
    struct node *node; /* holds the children that are not printed yet */
    bool printed;      /* its own line is; then the last children only are held back, to fold with the next */
};

/* What folding can still change: a loop, and a whole body behind it but for the last call. */
#define FOLDABLE (2 * CALL_TREE_PERIOD)

struct call_tree {
    const struct call_tree_sink *sink;
    void *context;
    bool fold;
    struct frame *frames; /* the first is no call, it holds the outermost ones */
    size_t depth, capacity;
    size_t printed; /* frames, which are the outermost; only the last of them has children */
    size_t held;    /* nodes, without those of printed frames */
};

/* ------------------------------------------------------------------------------------------ nodes */

static struct node *node_new(struct call_tree *tree, uint32_t function, enum call_mark mark)
{
    struct node *node = calloc(1, sizeof(*node));

    if (!node)
        return NULL;
    node->function = function;
    node->mark = mark;
    node->count = 1;
    tree->held++;
    return node;
}

static void node_free(struct call_tree *tree, struct node *node)
{
    for (struct node *child = node->first, *next; child; child = next) {
        next = child->next;
        node_free(tree, child);
    }
    tree->held--;
    free(node);
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

static void node_hash(struct node *node)
{
    node->hash = mix(mix(1 + (uint64_t)node->kind, node->function), 2 * (uint64_t)node->mark + node->assumed);
    for (const struct node *child = node->first; child; child = child->next)
        node->hash = mix(mix(node->hash, child->hash), child->count);
}

static bool node_equal(const struct node *a, const struct node *b)
{
    if (a->hash != b->hash || a->kind != b->kind || a->function != b->function || a->mark != b->mark ||
        a->assumed != b->assumed || a->kind == TREE_LOST)
        return false;
    for (a = a->first, b = b->first; a && b; a = a->next, b = b->next)
        if (a->count != b->count || !node_equal(a, b))
            return false;
    return !a && !b;
}

static void append_child(struct node *parent, struct node *child)
{
    child->previous = parent->last;
    child->next = NULL;
    if (parent->last)
        parent->last->next = child;
    else
        parent->first = child;
    parent->last = child;
    parent->children++;
}

static void unlink_child(struct node *parent, struct node *child)
{
    *(child->previous ? &child->previous->next : &parent->first) = child->next;
    *(child->next ? &child->next->previous : &parent->last) = child->previous;
    parent->children--;
}

/* ------------------------------------------------------------------------------------------ folding */

static bool same(const struct node *a, const struct node *b)
{
    return a->count == b->count && node_equal(a, b);
}

/* Whether the `length` nodes that end with `a` are those that end with `b`. */
static bool runs_equal(const struct node *a, const struct node *b, size_t length)
{
    for (; length; length--, a = a->previous, b = b->previous)
        if (!a || !b || !same(a, b))
            return false;
    return true;
}

static struct node *nth_last(const struct node *parent, size_t n)
{
    struct node *node = parent->last;

    while (node && n--)
        node = node->previous;
    return node;
}

static void drop_last(struct call_tree *tree, struct node *parent, size_t count)
{
    while (count-- && parent->last) {
        struct node *last = parent->last;

        unlink_child(parent, last);
        node_free(tree, last);
    }
}

/* The last children are one more round of the loop before them. */
static bool fold_into_loop(struct call_tree *tree, struct node *parent, size_t length)
{
    struct node *loop = nth_last(parent, length);

    if (!loop || loop->kind != TREE_LOOP || loop->children != length ||
        !runs_equal(loop->last, parent->last, length))
        return false;
    loop->count++;
    drop_last(tree, parent, length);
    return true;
}

/* The last children are what stands before them once more: both become a loop. */
static bool fold_pair(struct call_tree *tree, struct node *parent, size_t length)
{
    struct node *loop;

    if (parent->children < 2 * length || !runs_equal(parent->last, nth_last(parent, length), length))
        return false;
    loop = node_new(tree, 0, CALL_RETURNED);
    if (!loop)
        return false; /* unfolded is right too */
    loop->kind = TREE_LOOP;
    loop->count = 2;
    drop_last(tree, parent, length);
    for (struct node *body = nth_last(parent, length - 1), *next; body; body = next) {
        next = body->next;
        unlink_child(parent, body);
        append_child(loop, body);
    }
    node_hash(loop);
    append_child(parent, loop);
    return true;
}

/* Two loops of one body side by side, or two equal calls. */
static bool fold_equal(struct call_tree *tree, struct node *parent)
{
    struct node *last = parent->last;

    if (!last->previous || !node_equal(last->previous, last))
        return false;
    last->previous->count += last->count;
    drop_last(tree, parent, 1);
    return true;
}

static void fold_last(struct call_tree *tree, struct node *parent)
{
    bool folded = true;

    while (folded) {
        folded = fold_equal(tree, parent);
        for (size_t length = 2; !folded && length <= CALL_TREE_PERIOD && length <= parent->children; length++)
            folded = fold_into_loop(tree, parent, length) || fold_pair(tree, parent, length);
    }
}

/* ------------------------------------------------------------------------------------------ printing */

static struct call_tree_line line_of(const struct node *node, size_t depth)
{
    return (struct call_tree_line){.kind = node->kind,
                                   .depth = depth,
                                   .function = node->function,
                                   .mark = node->mark,
                                   .assumed = node->assumed,
                                   .count = node->count,
                                   .cause = node->cause};
}

static void print_node(const struct call_tree *tree, const struct node *node, size_t depth)
{
    struct call_tree_line line = line_of(node, depth);

    tree->sink->begin(tree->context, &line);
    for (const struct node *child = node->first; child; child = child->next)
        print_node(tree, child, depth + 1);
    tree->sink->end(tree->context, &line);
}

/* Prints and frees the children of the frame but the last `keep` ones. */
static void print_children(struct call_tree *tree, size_t frame, size_t keep)
{
    struct node *parent = tree->frames[frame].node;

    while (parent->first && parent->children > keep) {
        struct node *child = parent->first;

        unlink_child(parent, child);
        print_node(tree, child, frame);
        node_free(tree, child);
    }
}

static void print_frame(struct call_tree *tree, size_t frame)
{
    struct call_tree_line line;

    if (tree->frames[frame].printed)
        return;
    line = line_of(tree->frames[frame].node, frame - 1);
    tree->sink->begin(tree->context, &line);
    tree->frames[frame].printed = true;
    tree->printed++;
    tree->held--;
}

/* Prints from the outside until few enough are held back. */
static void relieve(struct call_tree *tree, size_t limit)
{
    print_children(tree, tree->printed - 1, FOLDABLE);
    while (tree->printed < tree->depth && tree->held > limit) {
        print_children(tree, tree->printed - 1, 0);
        print_frame(tree, tree->printed);
        print_children(tree, tree->printed - 1, FOLDABLE);
    }
}

/* ------------------------------------------------------------------------------------------ building */

static void add_child(struct call_tree *tree, size_t frame, struct node *child)
{
    struct node *parent = tree->frames[frame].node;

    append_child(parent, child);
    if (tree->fold)
        fold_last(tree, parent);
    if (tree->frames[frame].printed)
        print_children(tree, frame, tree->fold ? FOLDABLE : 0);
    if (tree->held > CALL_TREE_HELD)
        relieve(tree, CALL_TREE_HELD / 2);
}

static int push(struct call_tree *tree, uint32_t function, enum call_mark mark, bool assumed)
{
    struct node *node;

    if (array_reserve(&tree->frames, &tree->capacity, tree->depth + 1) < 0)
        return -ENOMEM;
    node = node_new(tree, function, mark);
    if (!node)
        return -ENOMEM;
    node->assumed = assumed;
    tree->frames[tree->depth++] = (struct frame){.node = node};
    return 0;
}

struct call_tree *call_tree_new(const struct call_tree_sink *sink, void *context, bool fold)
{
    struct call_tree *tree = calloc(1, sizeof(*tree));

    if (!tree)
        return NULL;
    tree->sink = sink;
    tree->context = context;
    tree->fold = fold;
    if (push(tree, 0, CALL_RETURNED, false) < 0) {
        call_tree_free(tree);
        return NULL;
    }
    tree->frames[0].printed = true;
    tree->printed = 1;
    tree->held = 0;
    return tree;
}

void call_tree_free(struct call_tree *tree)
{
    if (!tree)
        return;
    while (tree->depth)
        node_free(tree, tree->frames[--tree->depth].node);
    free(tree->frames);
    free(tree);
}

size_t call_tree_depth(const struct call_tree *tree)
{
    return tree->depth - 1;
}

static int begin_call(struct call_tree *tree, uint32_t function, enum call_mark mark, bool assumed)
{
    int r = push(tree, function, mark, assumed);

    if (r < 0)
        return r;
    if (!tree->fold)
        print_frame(tree, tree->depth - 1);
    else if (tree->held > CALL_TREE_HELD)
        relieve(tree, CALL_TREE_HELD / 2);
    return 0;
}

int call_tree_call(struct call_tree *tree, uint32_t function, enum call_mark mark)
{
    return begin_call(tree, function, mark, false);
}

int call_tree_call_assumed(struct call_tree *tree, uint32_t function, enum call_mark mark)
{
    return begin_call(tree, function, mark, true);
}

int call_tree_return(struct call_tree *tree)
{
    size_t frame = tree->depth - 1;
    struct node *node = tree->frames[frame].node;
    struct call_tree_line line = line_of(node, frame - 1);

    if (!frame)
        return 0;
    if (!tree->frames[frame].printed) {
        tree->depth--;
        node_hash(node);
        add_child(tree, frame - 1, node);
        return 0;
    }
    print_children(tree, frame, 0);
    tree->sink->end(tree->context, &line);
    tree->depth--;
    tree->printed--;
    tree->held++; /* for node_free to take back */
    node_free(tree, node);
    return 0;
}

int call_tree_lost(struct call_tree *tree, uint64_t count, const char *cause)
{
    struct node *node = node_new(tree, 0, CALL_RETURNED);

    if (!node)
        return -ENOMEM;
    node->kind = TREE_LOST;
    node->count = count;
    node->cause = cause;
    add_child(tree, tree->depth - 1, node);
    return 0;
}

int call_tree_finish(struct call_tree *tree)
{
    while (tree->depth > 1)
        call_tree_return(tree);
    print_children(tree, 0, 0);
    return 0;
}
