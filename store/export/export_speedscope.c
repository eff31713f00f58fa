/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Speedscope's file format (https://www.speedscope.app/file-format-schema.json): one document with a
 * "sampled" profile for each tree of call paths, whose samples are the paths, with their values as weights. A
 * thread with more than STACK_NODES_MAX paths has several profiles of the same name.
 */
#include "base/array.h"
#include "base/text.h"
#include "store/export/export_text.h"
#include "store/export/stack_tree.h"

static void put_frame(const struct stack_tree *tree, uint32_t frame)
{
    const struct export_function *function = stack_frame_function(tree, frame);
    FILE *out = tree->run.out;

    text_put(out, frame ? ",\n{\"name\":" : "{\"name\":");
    text_put_json(out, stack_frame_name(tree, frame));
    if (function && *function->file) {
        text_put(out, ",\"file\":");
        text_put_json(out, function->file);
    }
    if (function && function->line > 0) {
        text_put(out, ",\"line\":");
        text_put_number(out, (uint64_t)function->line);
    }
    putc_unlocked('}', out);
}

static int begin(struct stack_tree *tree)
{
    const char *name = tree->run.run->name;
    FILE *out = tree->run.out;

    text_put(
        out,
        "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":\"tracectl\",\n"
        "\"name\":");
    text_put_json(out, name ? name : "");
    text_put(out, ",\n\"shared\":{\"frames\":[\n");
    for (size_t i = 0; i < stack_frame_count(tree); i++)
        put_frame(tree, (uint32_t)i);
    text_put(out, "]},\n\"profiles\":[\n");
    return 0;
}

/* The thread is the profile, and no frame. */
static void put_sample(const struct stack_tree *tree, const struct stack_node *node)
{
    uint32_t frames[STACK_FRAMES_MAX];
    size_t count = stack_path(tree, node, frames);
    FILE *out = tree->run.out;

    putc_unlocked('[', out);
    for (size_t i = 1; i < count; i++) {
        if (i > 1)
            putc_unlocked(',', out);
        text_put_number(out, frames[i]);
    }
    putc_unlocked(']', out);
}

static void put_weight(const struct stack_tree *tree, const struct stack_node *node)
{
    text_put_number(tree->run.out, node->value);
}

/* The nodes that have a value of their own, as a JSON array. */
static void put_array(const struct stack_tree *tree,
                      void (*put)(const struct stack_tree *tree, const struct stack_node *node))
{
    const char *before = "[";

    for (size_t i = 0; i < tree->node_count; i++) {
        if (!tree->nodes[i].value)
            continue;
        text_put(tree->run.out, before);
        put(tree, &tree->nodes[i]);
        before = ",\n";
    }
    text_put(tree->run.out, *before == '[' ? "[]" : "]");
}

static int put_tree(struct stack_tree *tree)
{
    const bool time = tree->run.options->weight == EXPORT_TIME;
    size_t *profiles = tree->context;
    FILE *out = tree->run.out;
    uint64_t total = 0;

    for (size_t i = 0; i < tree->node_count; i++)
        total += tree->nodes[i].value;
    text_put(out, (*profiles)++ ? ",\n" : "");
    text_put(out, "{\"type\":\"sampled\",\"name\":");
    text_put_json(out, tree->title);
    text_put(out, time ? ",\"unit\":\"nanoseconds\"" : ",\"unit\":\"none\"");
    text_put(out, ",\"startValue\":0,\"endValue\":");
    text_put_number(out, total);
    text_put(out, ",\n\"samples\":");
    put_array(tree, put_sample);
    text_put(out, ",\n\"weights\":");
    put_array(tree, put_weight);
    putc_unlocked('}', out);
    return 0;
}

static int end(struct stack_tree *tree)
{
    text_put(tree->run.out, "]}\n");
    return 0;
}

static const struct stack_format format = {
    .make_name = text_printable, .begin = begin, .tree = put_tree, .end = end};

static int write_speedscope(struct tracestore *store, const struct tracestore_run *run,
                            const struct export_options *options, FILE *out, struct export_totals *ret_totals,
                            struct error *err)
{
    size_t profiles = 0;

    return stack_tree_export(&format, &profiles, store, run, options, out, ret_totals, err);
}

const struct export_format export_speedscope = {
    .name = "speedscope",
    .summary = "profiles for Speedscope",
    .write = write_speedscope,
};
