/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/export/stack_tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"

#define TABLE_SIZE (1u << 20) /* slots of the hash table: twice STACK_NODES_MAX or more */

/* Frames that are no functions, behind the index of the unknown function. */
enum special_frame { FRAME_LOST = 1, FRAME_DEEPER, FRAME_THREAD = STACK_SPECIAL_FRAMES + 1 };

/* ------------------------------------------------------------------------------------------ the tree */

static uint32_t hash(uint32_t parent, uint32_t frame)
{
    uint64_t key = (uint64_t)parent << 32 | frame;

    return (uint32_t)(key * 0x9e3779b97f4a7c15u >> 44); /* 20 bits: TABLE_SIZE */
}

static uint32_t child(struct stack_tree *tree, uint32_t parent, uint32_t frame)
{
    uint32_t slot = hash(parent, frame);

    for (; tree->table[slot]; slot = (slot + 1) % TABLE_SIZE) {
        const struct stack_node *node = &tree->nodes[tree->table[slot] - 1];

        if (node->parent == parent && node->frame == frame)
            return tree->table[slot] - 1;
    }
    tree->nodes[tree->node_count] = (struct stack_node){.parent = parent, .frame = frame};
    tree->table[slot] = (uint32_t)++tree->node_count;
    return (uint32_t)(tree->node_count - 1);
}

static uint32_t special(const struct stack_tree *tree, enum special_frame frame)
{
    return (uint32_t)tree->run.function_count + frame;
}

size_t stack_frame_count(const struct stack_tree *tree)
{
    return special(tree, FRAME_THREAD);
}

const char *stack_frame_name(const struct stack_tree *tree, uint32_t frame)
{
    if (frame <= tree->run.function_count)
        return tree->names[frame];
    return frame == special(tree, FRAME_LOST)     ? "[lost]"
           : frame == special(tree, FRAME_DEEPER) ? "[deeper]"
                                                  : tree->title;
}

const struct export_function *stack_frame_function(const struct stack_tree *tree, uint32_t frame)
{
    return frame <= tree->run.function_count ? &tree->run.functions[frame] : NULL;
}

size_t stack_path(const struct stack_tree *tree, const struct stack_node *node, uint32_t *frames)
{
    size_t depth = 1, at;

    for (const struct stack_node *up = node; up != tree->nodes; up = &tree->nodes[up->parent])
        depth++;
    at = depth;
    for (const struct stack_node *up = node; at; up = &tree->nodes[up->parent])
        frames[--at] = up->frame;
    return depth;
}

static void begin_tree(struct stack_tree *tree)
{
    memset(tree->table, 0, TABLE_SIZE * sizeof(*tree->table));
    tree->nodes[0] = (struct stack_node){.frame = special(tree, FRAME_THREAD)};
    tree->node_count = 1;
}

/* Gives the tree to the format and begins it anew with the open calls. */
static int renew_tree(struct stack_tree *tree)
{
    int r = tree->format->tree(tree);

    for (size_t i = 1; i < tree->depth; i++) /* what the nodes were, before they go */
        tree->stack[i] = tree->nodes[tree->stack[i]].frame;
    begin_tree(tree);
    for (size_t i = 1; i < tree->depth; i++)
        tree->stack[i] = child(tree, tree->stack[i - 1], tree->stack[i]);
    tree->current = tree->stack[tree->depth - 1];
    return r;
}

/* ------------------------------------------------------------------------------------------ events */

static int begin_thread(void *context, const struct tracestore_thread *thread)
{
    struct stack_tree *tree = context;
    AUTO_FREE char *title = export_thread_title(thread);

    free(tree->title);
    tree->title = title ? tree->format->make_name(title) : NULL;
    if (!tree->title)
        return error_no_memory(tree->run.err);
    tree->thread = thread;
    tree->bare = thread->returns == TRACE_RETURNS_NONE;
    tree->stack[0] = 0;
    tree->depth = 1;
    tree->beyond = 0;
    tree->current = 0;
    tree->last_ns = 0;
    begin_tree(tree);
    return 0;
}

static void add_call(struct stack_tree *tree, const struct export_event *event)
{
    const bool deep = tree->depth > STACK_DEPTH_MAX;
    const uint32_t frame = deep ? special(tree, FRAME_DEEPER) : (uint32_t)event->function;
    const uint32_t node = child(tree, tree->stack[tree->depth - 1], frame);

    tree->nodes[node].calls += !event->unseen;
    if (tree->run.options->weight == EXPORT_CALLS)
        tree->nodes[node].value += !event->unseen;
    tree->current = node;
    if (tree->bare)
        tree->current = 0;
    else if (deep)
        tree->beyond++;
    else
        tree->stack[tree->depth++] = node;
}

static void add_return(struct stack_tree *tree)
{
    if (tree->beyond)
        tree->beyond--;
    else if (tree->depth > 1)
        tree->depth--;
    tree->current = tree->stack[tree->depth - 1];
    if (tree->beyond)
        tree->current = child(tree, tree->current, special(tree, FRAME_DEEPER));
}

static void add_loss(struct stack_tree *tree, const struct export_event *event)
{
    const uint32_t node = child(tree, tree->stack[tree->depth - 1], special(tree, FRAME_LOST));

    if (tree->run.options->weight == EXPORT_CALLS)
        tree->nodes[node].value += event->count ? event->count : 1;
    tree->current = node;
}

static int add_event(void *context, const struct export_event *event)
{
    struct stack_tree *tree = context;
    int r = 0;

    if (tree->run.options->weight == EXPORT_TIME && tree->last_ns)
        tree->nodes[tree->current].value += event->at_ns - tree->last_ns;
    tree->last_ns = event->at_ns;
    if (tree->node_count + STACK_FRAMES_MAX > STACK_NODES_MAX)
        r = renew_tree(tree);
    if (event->event.kind == EVENT_CALL)
        add_call(tree, event);
    else if (event->event.kind == EVENT_RETURN)
        add_return(tree);
    else
        add_loss(tree, event);
    return r;
}

static int end_thread(void *context)
{
    struct stack_tree *tree = context;

    return tree->format->tree(tree);
}

static int add_gap(void *context, const struct export_gap *gap)
{
    struct stack_tree *tree = context;

    return tree->format->gap ? tree->format->gap(tree, gap) : 0;
}

static const struct export_sink sink = {
    .thread = begin_thread,
    .event = add_event,
    .thread_end = end_thread,
    .gap = add_gap,
};

static int walk(struct stack_tree *tree)
{
    int r;

    tree->nodes = malloc(STACK_NODES_MAX * sizeof(*tree->nodes));
    tree->table = malloc(TABLE_SIZE * sizeof(*tree->table));
    tree->stack = malloc(STACK_FRAMES_MAX * sizeof(*tree->stack));
    if (!tree->nodes || !tree->table || !tree->stack)
        return error_no_memory(tree->run.err);
    r = export_names(&tree->run, tree->format->make_name, &tree->names);
    if (!r && tree->format->begin)
        r = tree->format->begin(tree);
    if (!r)
        r = export_walk(&tree->run, &sink, tree);
    return !r && tree->format->end ? tree->format->end(tree) : r;
}

int stack_tree_export(const struct stack_format *format, void *context, struct tracestore *store,
                      const struct tracestore_run *run, const struct export_options *options, FILE *out,
                      struct export_totals *ret_totals, struct error *err)
{
    struct stack_tree tree = {.format = format, .context = context};
    int r = export_run_open(&tree.run, store, run, options, out, err);

    if (r == 0)
        r = walk(&tree);
    if (r == 0)
        *ret_totals = tree.run.totals;
    free(tree.title);
    free(tree.nodes);
    free(tree.table);
    free(tree.stack);
    export_names_free(&tree.run, tree.names);
    export_run_release(&tree.run);
    return r;
}
