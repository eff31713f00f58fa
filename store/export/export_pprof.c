/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The profile.proto of pprof (https://github.com/google/pprof/blob/main/proto/profile.proto), uncompressed: a
 * sample for each call path, with the thread as its label. Functions and their names are written when a path
 * first has them; a message's repeated fields may stand anywhere in it.
 */
#include <stdlib.h>

#include "base/error.h"
#include "base/text.h"
#include "store/export/export_protobuf.h"
#include "store/export/export_text.h"
#include "store/export/stack_tree.h"

enum profile_field {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_LOCATION = 4,
    PROFILE_FUNCTION = 5,
    PROFILE_STRING = 6
};
enum value_type_field { VALUE_TYPE = 1, VALUE_UNIT = 2 };
enum sample_field { SAMPLE_LOCATION = 1, SAMPLE_VALUE = 2, SAMPLE_LABEL = 3 };
enum label_field { LABEL_KEY = 1, LABEL_TEXT = 2 };
enum location_field { LOCATION_ID = 1, LOCATION_LINE = 4 };
enum line_field { LINE_FUNCTION = 1, LINE_NUMBER = 2 };
enum function_field {
    FUNCTION_ID = 1,
    FUNCTION_NAME = 2,
    FUNCTION_SYSTEM_NAME = 3,
    FUNCTION_FILE = 4,
    FUNCTION_LINE = 5
};

/* The first strings of the table; the profile format wants the first one empty. */
enum text_number { TEXT_EMPTY, TEXT_TYPE, TEXT_UNIT, TEXT_THREAD };

struct pprof {
    bool *known; /* by frame: its function and location have been written */
    uint64_t texts;
    struct bytes message, inner; /* being made; kept for their memory */
    bool failed;                 /* out of memory, reported at the end of the tree */
};

static void check(struct pprof *pprof, int r)
{
    pprof->failed |= r != 0;
}

/* ------------------------------------------------------------------------------------------ messages */

static void put_field(const struct stack_tree *tree, enum profile_field field, const void *data, size_t size)
{
    uint8_t head[2 * VARINT_MAX_BYTES];
    size_t head_size = varint_put(head, (uint64_t)field << 3 | 2);

    head_size += varint_put(head + head_size, size);
    fwrite_unlocked(head, 1, head_size, tree->run.out);
    fwrite_unlocked(data, 1, size, tree->run.out);
}

static void put_message(const struct stack_tree *tree, enum profile_field field)
{
    const struct pprof *pprof = tree->context;

    put_field(tree, field, pprof->message.data, pprof->message.size);
}

/* Adds a text to the table and gives its number. */
static uint64_t add_text(const struct stack_tree *tree, const char *text)
{
    struct pprof *pprof = tree->context;

    put_field(tree, PROFILE_STRING, text, strlen(text));
    return pprof->texts++;
}

static int begin(struct stack_tree *tree)
{
    const bool time = tree->run.options->weight == EXPORT_TIME;
    struct pprof *pprof = tree->context;

    pprof->known = calloc(stack_frame_count(tree), sizeof(*pprof->known));
    if (!pprof->known)
        return error_no_memory(tree->run.err);
    add_text(tree, "");
    add_text(tree, time ? "time" : "calls");
    add_text(tree, time ? "nanoseconds" : "count");
    add_text(tree, "thread");
    check(pprof, protobuf_number(&pprof->message, VALUE_TYPE, TEXT_TYPE));
    check(pprof, protobuf_number(&pprof->message, VALUE_UNIT, TEXT_UNIT));
    put_message(tree, PROFILE_SAMPLE_TYPE);
    return 0;
}

/* ------------------------------------------------------------------------------------------ functions */

static void put_function(struct stack_tree *tree, uint32_t frame)
{
    const struct export_function *function = stack_frame_function(tree, frame);
    struct pprof *pprof = tree->context;
    uint64_t name = add_text(tree, stack_frame_name(tree, frame));
    uint64_t file = function && *function->file ? add_text(tree, function->file) : TEXT_EMPTY;

    pprof->message.size = 0;
    check(pprof, protobuf_number(&pprof->message, FUNCTION_ID, frame + 1u));
    check(pprof, protobuf_number(&pprof->message, FUNCTION_NAME, name));
    check(pprof, protobuf_number(&pprof->message, FUNCTION_SYSTEM_NAME, name));
    check(pprof, protobuf_number(&pprof->message, FUNCTION_FILE, file));
    if (function && function->line > 0)
        check(pprof, protobuf_number(&pprof->message, FUNCTION_LINE, (uint64_t)function->line));
    put_message(tree, PROFILE_FUNCTION);
}

/* A location is a function here, and has its number. */
static void put_location(struct stack_tree *tree, uint32_t frame)
{
    const struct export_function *function = stack_frame_function(tree, frame);
    struct pprof *pprof = tree->context;

    pprof->message.size = pprof->inner.size = 0;
    check(pprof, protobuf_number(&pprof->inner, LINE_FUNCTION, frame + 1u));
    if (function && function->line > 0)
        check(pprof, protobuf_number(&pprof->inner, LINE_NUMBER, (uint64_t)function->line));
    check(pprof, protobuf_number(&pprof->message, LOCATION_ID, frame + 1u));
    check(pprof, protobuf_message(&pprof->message, LOCATION_LINE, &pprof->inner));
    put_message(tree, PROFILE_LOCATION);
}

/* ------------------------------------------------------------------------------------------ samples */

static void put_sample(struct stack_tree *tree, const struct stack_node *node, uint64_t title)
{
    uint32_t frames[STACK_FRAMES_MAX];
    size_t count = stack_path(tree, node, frames);
    struct pprof *pprof = tree->context;

    for (size_t i = 1; i < count; i++) {
        if (pprof->known[frames[i]])
            continue;
        pprof->known[frames[i]] = true;
        put_function(tree, frames[i]);
        put_location(tree, frames[i]);
    }
    pprof->message.size = pprof->inner.size = 0;
    for (size_t i = count; i-- > 1;) /* the innermost first; the thread is the label */
        check(pprof, protobuf_number(&pprof->message, SAMPLE_LOCATION, frames[i] + 1u));
    check(pprof, protobuf_number(&pprof->message, SAMPLE_VALUE, node->value));
    check(pprof, protobuf_number(&pprof->inner, LABEL_KEY, TEXT_THREAD));
    check(pprof, protobuf_number(&pprof->inner, LABEL_TEXT, title));
    check(pprof, protobuf_message(&pprof->message, SAMPLE_LABEL, &pprof->inner));
    put_message(tree, PROFILE_SAMPLE);
}

static int put_tree(struct stack_tree *tree)
{
    struct pprof *pprof = tree->context;
    uint64_t title = add_text(tree, tree->title);

    for (size_t i = 0; i < tree->node_count; i++)
        if (tree->nodes[i].value)
            put_sample(tree, &tree->nodes[i], title);
    return pprof->failed ? error_no_memory(tree->run.err) : 0;
}

static const struct stack_format format = {.make_name = text_valid, .begin = begin, .tree = put_tree};

static int write_pprof(struct tracestore *store, const struct tracestore_run *run,
                       const struct export_options *options, FILE *out, struct export_totals *ret_totals,
                       struct error *err)
{
    struct pprof pprof = {0};
    int r = stack_tree_export(&format, &pprof, store, run, options, out, ret_totals, err);

    free(pprof.known);
    bytes_release(&pprof.message);
    bytes_release(&pprof.inner);
    return r;
}

const struct export_format export_pprof = {
    .name = "pprof",
    .summary = "a profile for pprof (profile.proto)",
    .write = write_pprof,
};
