/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Folded stacks, one line a call path: "FRAME;FRAME;FRAME COUNT", the first frame being the thread. COUNT is
 * what the innermost frame has by itself: calls of it, or nanoseconds in it.
 *
 * The paths of a thread are a tree in memory. When it has NODES_MAX nodes its lines are written and it is
 * begun anew with the calls that are open: consumers add up equal lines, and memory is bounded. Calls deeper
 * than DEPTH_MAX are counted in one frame "[deeper]": a line's length is bounded, too.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "base/text.h"
#include "store/export/export_run.h"
#include "store/export/export_text.h"

#define NODES_MAX 500000u
#define DEPTH_MAX 1000u
#define TABLE_SIZE (1u << 20) /* slots of the hash table: twice NODES_MAX or more */

/* Frames that are no functions, behind the index of the unknown function. */
enum special_frame { FRAME_LOST = 1, FRAME_DEEPER, FRAME_THREAD };

struct node {
    uint32_t parent;
    uint32_t frame; /* index of function, or a special one */
    uint64_t value;
};

struct folded {
    struct export_run run;
    char **names;
    char *title; /* the thread's frame */
    struct node *nodes;
    uint32_t *table; /* node + 1 by (parent, frame), 0: free */
    size_t node_count;
    uint32_t *stack; /* nodes of the open calls; [0] is the thread */
    size_t depth, capacity;
    size_t beyond;    /* open calls deeper than DEPTH_MAX */
    uint32_t current; /* the node that time goes to */
    uint64_t last_ns;
    bool bare;
};

/* ------------------------------------------------------------------------------------------ the tree */

static uint32_t hash(uint32_t parent, uint32_t frame)
{
    uint64_t key = (uint64_t)parent << 32 | frame;

    return (uint32_t)(key * 0x9e3779b97f4a7c15u >> 44); /* 20 bits: TABLE_SIZE */
}

static uint32_t child(struct folded *folded, uint32_t parent, uint32_t frame)
{
    uint32_t slot = hash(parent, frame);

    for (; folded->table[slot]; slot = (slot + 1) % TABLE_SIZE) {
        const struct node *node = &folded->nodes[folded->table[slot] - 1];

        if (node->parent == parent && node->frame == frame)
            return folded->table[slot] - 1;
    }
    folded->nodes[folded->node_count] = (struct node){.parent = parent, .frame = frame};
    folded->table[slot] = (uint32_t)++folded->node_count;
    return (uint32_t)(folded->node_count - 1);
}

static const char *frame_name(const struct folded *folded, uint32_t frame)
{
    const size_t unknown = folded->run.function_count;

    if (frame <= unknown)
        return folded->names[frame];
    return frame == unknown + FRAME_LOST     ? "[lost]"
           : frame == unknown + FRAME_DEEPER ? "[deeper]"
                                             : folded->title;
}

static void put_line(const struct folded *folded, const struct node *node)
{
    uint32_t frames[DEPTH_MAX + 4];
    size_t count = 0;
    FILE *out = folded->run.out;

    for (const struct node *at = node;; at = &folded->nodes[at->parent]) {
        frames[count++] = at->frame;
        if (at == folded->nodes)
            break;
    }
    while (count) {
        text_put(out, frame_name(folded, frames[--count]));
        putc_unlocked(count ? ';' : ' ', out);
    }
    text_put_number(out, node->value);
    putc_unlocked('\n', out);
}

static void put_tree(const struct folded *folded)
{
    for (size_t i = 0; i < folded->node_count; i++)
        if (folded->nodes[i].value)
            put_line(folded, &folded->nodes[i]);
}

static void begin_tree(struct folded *folded)
{
    memset(folded->table, 0, TABLE_SIZE * sizeof(*folded->table));
    folded->nodes[0] = (struct node){.frame = (uint32_t)folded->run.function_count + FRAME_THREAD};
    folded->node_count = 1;
}

/* Writes the tree and begins it anew with the open calls. */
static void renew_tree(struct folded *folded)
{
    put_tree(folded);
    for (size_t i = 1; i < folded->depth; i++) /* what the nodes were, before they go */
        folded->stack[i] = folded->nodes[folded->stack[i]].frame;
    begin_tree(folded);
    for (size_t i = 1; i < folded->depth; i++)
        folded->stack[i] = child(folded, folded->stack[i - 1], folded->stack[i]);
    folded->current = folded->stack[folded->depth - 1];
}

/* ------------------------------------------------------------------------------------------ events */

/* A name as a frame: without what separates frames and lines. */
static char *make_frame(const char *name)
{
    char *frame = text_printable(name);

    for (char *at = frame; at && *at; at++)
        if (*at == ';')
            *at = ':';
    return frame;
}

static int folded_thread(void *context, const struct tracestore_thread *thread)
{
    struct folded *folded = context;
    AUTO_FREE char *title = export_thread_title(thread);

    free(folded->title);
    folded->title = title ? make_frame(title) : NULL;
    if (!folded->title || array_reserve(&folded->stack, &folded->capacity, DEPTH_MAX + 4))
        return error_no_memory(folded->run.err);
    folded->bare = thread->returns == TRACE_RETURNS_NONE;
    folded->stack[0] = 0;
    folded->depth = 1;
    folded->beyond = 0;
    folded->current = 0;
    folded->last_ns = 0;
    begin_tree(folded);
    return 0;
}

static void add_call(struct folded *folded, const struct export_event *event)
{
    const bool deep = folded->depth > DEPTH_MAX;
    const uint32_t frame =
        deep ? (uint32_t)folded->run.function_count + FRAME_DEEPER : (uint32_t)event->function;
    const uint32_t node = child(folded, folded->stack[folded->depth - 1], frame);

    if (folded->run.options->weight == EXPORT_CALLS && !event->unseen)
        folded->nodes[node].value++;
    folded->current = node;
    if (folded->bare)
        folded->current = 0;
    else if (deep)
        folded->beyond++;
    else
        folded->stack[folded->depth++] = node;
}

static void add_return(struct folded *folded)
{
    if (folded->beyond)
        folded->beyond--;
    else if (folded->depth > 1)
        folded->depth--;
    folded->current = folded->stack[folded->depth - 1];
    if (folded->beyond)
        folded->current = child(folded, folded->current, (uint32_t)folded->run.function_count + FRAME_DEEPER);
}

static void add_loss(struct folded *folded, const struct export_event *event)
{
    const uint32_t node =
        child(folded, folded->stack[folded->depth - 1], (uint32_t)folded->run.function_count + FRAME_LOST);

    if (folded->run.options->weight == EXPORT_CALLS)
        folded->nodes[node].value += event->count ? event->count : 1;
    folded->current = node;
}

static int folded_event(void *context, const struct export_event *event)
{
    struct folded *folded = context;

    if (folded->run.options->weight == EXPORT_TIME && folded->last_ns)
        folded->nodes[folded->current].value += event->at_ns - folded->last_ns;
    folded->last_ns = event->at_ns;
    if (folded->node_count + DEPTH_MAX + 4 > NODES_MAX)
        renew_tree(folded);
    if (event->event.kind == EVENT_CALL)
        add_call(folded, event);
    else if (event->event.kind == EVENT_RETURN)
        add_return(folded);
    else
        add_loss(folded, event);
    return 0;
}

static int folded_thread_end(void *context)
{
    put_tree(context);
    return 0;
}

/* What has no place in a stream has a stack of its own. */
static int folded_gap(void *context, const struct export_gap *gap)
{
    struct folded *folded = context;
    AUTO_FREE char *text = make_frame(gap->blind ? gap->name : gap->cause);

    if (!text)
        return error_no_memory(folded->run.err);
    fprintf(folded->run.out, "%s;%s %llu\n", gap->blind ? "[not observed]" : "[lost]", text,
            (unsigned long long)(gap->count ? gap->count : 1));
    return 0;
}

static const struct export_sink sink = {
    .thread = folded_thread,
    .event = folded_event,
    .thread_end = folded_thread_end,
    .gap = folded_gap,
};

static int write_folded(struct tracestore *store, const struct tracestore_run *run,
                        const struct export_options *options, FILE *out, struct export_totals *ret_totals,
                        struct error *err)
{
    struct folded folded = {0};
    int r = export_run_open(&folded.run, store, run, options, out, err);

    folded.nodes = malloc(NODES_MAX * sizeof(*folded.nodes));
    folded.table = malloc(TABLE_SIZE * sizeof(*folded.table));
    if (r == 0 && (!folded.nodes || !folded.table))
        r = error_no_memory(err);
    if (r == 0)
        r = export_names(&folded.run, make_frame, &folded.names);
    if (r == 0)
        r = export_walk(&folded.run, &sink, &folded);
    if (r == 0)
        *ret_totals = folded.run.totals;
    free(folded.title);
    free(folded.nodes);
    free(folded.table);
    free(folded.stack);
    export_names_free(&folded.run, folded.names);
    export_run_release(&folded.run);
    return r;
}

const struct export_format export_folded = {
    .name = "folded",
    .summary = "folded stacks, for flame graphs",
    .write = write_folded,
};
