/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Callgrind's format (https://valgrind.org/docs/manual/cl-format.html), for KCachegrind and
 * callgrind_annotate: of each call path what its last function has by itself, and what each path below it has
 * with all that it called. Consumers add up. Names of functions and files are written once, with a number.
 */
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/text.h"
#include "store/export/export_text.h"
#include "store/export/stack_tree.h"

struct callgrind {
    bool *named; /* by frame: its name has been written */
    /* By node. */
    uint64_t *total;           /* its value and all below it */
    uint32_t *first, *sibling; /* its first child, and the next child of its parent; 0: none */
};

static int begin(struct stack_tree *tree)
{
    struct callgrind *callgrind = tree->context;

    callgrind->named = calloc(stack_frame_count(tree), sizeof(*callgrind->named));
    callgrind->total = malloc(STACK_NODES_MAX * sizeof(*callgrind->total));
    callgrind->first = malloc(STACK_NODES_MAX * sizeof(*callgrind->first));
    callgrind->sibling = malloc(STACK_NODES_MAX * sizeof(*callgrind->sibling));
    if (!callgrind->named || !callgrind->total || !callgrind->first || !callgrind->sibling)
        return error_no_memory(tree->run.err);
    text_put(tree->run.out, "# callgrind format\nversion: 1\ncreator: tracectl\npositions: line\n");
    text_put(tree->run.out, tree->run.options->weight == EXPORT_TIME
                                ? "event: Time : nanoseconds\nevents: Time\n"
                                : "event: Calls : calls\nevents: Calls\n");
    return 0;
}

/* ------------------------------------------------------------------------------------------ the tree */

/* A parent comes before its children. */
static void link_nodes(const struct stack_tree *tree, struct callgrind *callgrind)
{
    for (size_t i = 0; i < tree->node_count; i++) {
        callgrind->total[i] = tree->nodes[i].value;
        callgrind->first[i] = callgrind->sibling[i] = 0;
    }
    for (uint32_t i = (uint32_t)tree->node_count; i-- > 1;) {
        uint32_t parent = tree->nodes[i].parent;

        callgrind->total[parent] += callgrind->total[i];
        callgrind->sibling[i] = callgrind->first[parent];
        callgrind->first[parent] = i;
    }
}

static uint64_t line_of(const struct stack_tree *tree, uint32_t frame)
{
    const struct export_function *function = stack_frame_function(tree, frame);

    return function && function->line > 0 ? (uint64_t)function->line : 0;
}

/* "PREFIXfl=(N) FILE" and "PREFIXfn=(N) NAME", of a thread the name alone. */
static void put_position(const struct stack_tree *tree, uint32_t frame, const char *prefix)
{
    const struct export_function *function = stack_frame_function(tree, frame);
    struct callgrind *callgrind = tree->context;
    FILE *out = tree->run.out;
    bool *named = frame < stack_frame_count(tree) ? &callgrind->named[frame] : NULL;
    AUTO_FREE char *file =
        named && !*named ? text_printable(function && *function->file ? function->file : "???") : NULL;

    if (!named) {
        fprintf(out, "%sfl=???\n%sfn=%s\n", prefix, prefix, tree->title);
        return;
    }
    fprintf(out, "%sfl=(%u)%s%s\n", prefix, frame + 1, file ? " " : "", file ? file : "");
    fprintf(out, "%sfn=(%u)%s%s\n", prefix, frame + 1, *named ? "" : " ",
            *named ? "" : stack_frame_name(tree, frame));
    *named = true;
}

static void put_cost(const struct stack_tree *tree, uint32_t frame, uint64_t cost)
{
    text_put_number(tree->run.out, line_of(tree, frame));
    putc_unlocked(' ', tree->run.out);
    text_put_number(tree->run.out, cost);
    putc_unlocked('\n', tree->run.out);
}

static int put_tree(struct stack_tree *tree)
{
    struct callgrind *callgrind = tree->context;

    link_nodes(tree, callgrind);
    for (uint32_t i = 0; i < tree->node_count; i++) {
        const struct stack_node *node = &tree->nodes[i];

        if (!callgrind->total[i])
            continue;
        putc_unlocked('\n', tree->run.out);
        put_position(tree, node->frame, "");
        put_cost(tree, node->frame, node->value);
        for (uint32_t at = callgrind->first[i]; at; at = callgrind->sibling[at]) {
            const struct stack_node *callee = &tree->nodes[at];

            put_position(tree, callee->frame, "c");
            text_put(tree->run.out, "calls=");
            text_put_number(tree->run.out, callee->calls);
            putc_unlocked(' ', tree->run.out);
            text_put_number(tree->run.out, line_of(tree, callee->frame));
            putc_unlocked('\n', tree->run.out);
            put_cost(tree, node->frame, callgrind->total[at]);
        }
    }
    return 0;
}

static const struct stack_format format = {.make_name = text_printable, .begin = begin, .tree = put_tree};

static int write_callgrind(struct tracestore *store, const struct tracestore_run *run,
                           const struct export_options *options, FILE *out, struct export_totals *ret_totals,
                           struct error *err)
{
    struct callgrind callgrind = {0};
    int r = stack_tree_export(&format, &callgrind, store, run, options, out, ret_totals, err);

    free(callgrind.named);
    free(callgrind.total);
    free(callgrind.first);
    free(callgrind.sibling);
    return r;
}

const struct export_format export_callgrind = {
    .name = "callgrind",
    .summary = "call costs for KCachegrind and callgrind_annotate",
    .write = write_callgrind,
};
