/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Folded stacks, one line a call path: "FRAME;FRAME;FRAME COUNT", the first frame being the thread. COUNT is
 * what the innermost frame has by itself: calls of it, or nanoseconds in it. A path may have several lines,
 * which consumers add up.
 */
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/text.h"
#include "store/export/export_text.h"
#include "store/export/stack_tree.h"

/* A name as a frame: without what separates frames and lines. */
static char *make_frame(const char *name)
{
    char *frame = text_printable(name);

    for (char *at = frame; at && *at; at++)
        if (*at == ';')
            *at = ':';
    return frame;
}

static int put_tree(struct stack_tree *tree)
{
    uint32_t frames[STACK_FRAMES_MAX];
    FILE *out = tree->run.out;

    for (size_t i = 0; i < tree->node_count; i++) {
        const struct stack_node *node = &tree->nodes[i];
        size_t count = node->value ? stack_path(tree, node, frames) : 0;

        for (size_t at = 0; at < count; at++) {
            text_put(out, stack_frame_name(tree, frames[at]));
            putc_unlocked(at + 1 < count ? ';' : ' ', out);
        }
        if (!count)
            continue;
        text_put_number(out, node->value);
        putc_unlocked('\n', out);
    }
    return 0;
}

/* What has no place in a stream has a stack of its own. */
static int put_gap(struct stack_tree *tree, const struct export_gap *gap)
{
    AUTO_FREE char *text = make_frame(gap->blind ? gap->name : gap->cause);

    if (!text)
        return error_no_memory(tree->run.err);
    fprintf(tree->run.out, "%s;%s %llu\n", gap->blind ? "[not observed]" : "[lost]", text,
            (unsigned long long)(gap->count ? gap->count : 1));
    return 0;
}

static const struct stack_format format = {.make_name = make_frame, .tree = put_tree, .gap = put_gap};

static int write_folded(struct tracestore *store, const struct tracestore_run *run,
                        const struct export_options *options, FILE *out, struct export_totals *ret_totals,
                        struct error *err)
{
    return stack_tree_export(&format, NULL, store, run, options, out, ret_totals, err);
}

const struct export_format export_folded = {
    .name = "folded",
    .summary = "folded stacks, for flame graphs",
    .write = write_folded,
};
