/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tracectl go tree: the creation tree, and what each was doing at the end (figure 4.4 of Taheri's dissertation,
 * 2022). Similar siblings, with all that is below them, are one line with a count.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/go/tree.h"
#include "base/array.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/common/output.h"
#include "cli/go/go_commands.h"
#include "cli/go/go_verdict.h"

enum { KEY_ALL = 1000, KEY_RAW, LABEL_SIZE = 64, TEXT_SIZE = 256, INDENT = 2 };

struct arguments {
    const char *run;
    bool all, raw;
};

static const struct argp_option options[] = {
    {"all", KEY_ALL, 0, 0, "Include the goroutines of the runtime", 0},
    {"raw", KEY_RAW, 0, 0, "Print one line per goroutine; do not fold similar siblings", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct arguments *arguments = state->input;

    switch (key) {
    case KEY_ALL:
        arguments->all = true;
        return 0;
    case KEY_RAW:
        arguments->raw = true;
        return 0;
    case ARGP_KEY_ARG:
        if (arguments->run)
            argp_error(state, "unexpected argument '%s' (name one run)", arg);
        arguments->run = arg;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "go tree needs a run (tracectl runs lists them)");
        return EINVAL;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "RUN",
    .doc =
        "Show the creation tree of the goroutines of a recorded Go program, and what each was doing at "
        "the end.\vSimilar siblings, with everything below them, are folded into one line with their "
        "number (x 998).",
    .children = cli_common_children,
};

/* ------------------------------------------------------------------------------------------ json */

static json_t *held_json(const struct go_judged *judged, const struct go_goroutine *goroutine)
{
    json_t *array = json_array();

    for (size_t i = 0; i < goroutine->held_count; i++) {
        char object[32];

        snprintf(object, sizeof(object), "0x%" PRIx64, goroutine->held[i].object);
        json_array_append_new(array, json_pack("{s:s, s:b, s:o}", "object", object, "shared",
                                               goroutine->held[i].shared, "since",
                                               go_place_json(judged, goroutine->held[i].site)));
    }
    return array;
}

static json_t *last_json(const struct go_judged *judged, const struct go_node *node)
{
    json_t *last;

    if (!node->has_last)
        return json_null();
    last = go_place_json(judged, node->last_site);
    json_object_set_new(last, "operation", json_string(go_op_name(node->last_operation)));
    return last;
}

static json_t *node_json(const struct go_judged *judged, const struct go_node *node)
{
    const struct go_goroutine *goroutine = node->goroutine;
    const struct go_action *waits = goroutine->state == GO_STATE_BLOCKED ? go_waiting_in(goroutine) : NULL;
    const char *reason = go_judged_reason(judged, goroutine);
    char label[LABEL_SIZE], object[TEXT_SIZE];

    go_judged_label(judged, goroutine->goroutine, label, sizeof(label));
    go_action_object(waits, object, sizeof(object));
    return json_pack("{s:o, s:i, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:b}", "goroutine", cli_json_text(label),
                     "depth", (int)node->depth, "begins_with", go_place_json(judged, goroutine->function),
                     "created", go_place_json(judged, goroutine->created_at), "state",
                     go_state_text(goroutine->state), "wait_reason",
                     *reason && goroutine->state == GO_STATE_BLOCKED ? cli_json_text(reason) : json_null(),
                     "object", *object ? cli_json_text(object) : json_null(), "last", last_json(judged, node),
                     "holds", held_json(judged, goroutine), "system", goroutine->system);
}

/* ------------------------------------------------------------------------------------------ text */

static void put_text_place(const struct go_judged *judged, uint32_t site)
{
    struct go_place place = go_judged_place(judged, site);
    char text[TEXT_SIZE];

    go_place_text(&place, text, sizeof(text));
    text_show(stdout, text);
}

static void put_state(const struct go_judged *judged, const struct go_node *node)
{
    const struct go_goroutine *goroutine = node->goroutine;
    const char *reason = go_judged_reason(judged, goroutine);
    char object[TEXT_SIZE];

    text_print(stdout, "%s", go_state_text(goroutine->state));
    if (goroutine->state == GO_STATE_BLOCKED) {
        go_action_object(go_waiting_in(goroutine), object, sizeof(object));
        text_print(stdout, "%s%s%s", *reason ? " (" : "", reason, *reason ? ")" : "");
        text_print(stdout, "%s%s", *object ? ", waits for " : "", object);
    }
    for (size_t i = 0; i < goroutine->held_count; i++) {
        text_print(stdout, ", holds 0x%" PRIx64 " since ", goroutine->held[i].object);
        put_text_place(judged, goroutine->held[i].site);
    }
    if (node->has_last) {
        text_print(stdout, "; last: %s at ", go_op_name(node->last_operation));
        put_text_place(judged, node->last_site);
    }
}

static void put_node(const struct go_judged *judged, const struct go_node *node)
{
    const struct go_goroutine *goroutine = node->goroutine;
    struct go_place begins = go_judged_place(judged, goroutine->function);
    char label[LABEL_SIZE];

    go_judged_label(judged, goroutine->goroutine, label, sizeof(label));
    text_print(stdout, "%*s%s %s", (int)node->depth * INDENT, "", label,
               *begins.function            ? begins.function
               : goroutine->goroutine == 1 ? "main goroutine"
                                           : "?");
    if (goroutine->created_at) {
        fputs(", created at ", stdout);
        put_text_place(judged, goroutine->created_at);
    }
    fputs(": ", stdout);
    put_state(judged, node);
    if (node->count > 1)
        text_print(stdout, " (x %" PRIu64 ")", node->count);
    putchar('\n');
}

/* ------------------------------------------------------------------------------------------ the command */

struct printing {
    const struct go_judged *judged;
    struct json_array *array; /* NULL: as text */
};

static int put(void *context, const struct go_node *node)
{
    const struct printing *printing = context;

    if (!printing->array)
        put_node(printing->judged, node);
    else {
        json_t *item = node_json(printing->judged, node);

        json_object_set_new(item, "count", cli_json_count(node->count));
        cli_json_item(printing->array, item);
    }
    return cli_output_broken();
}

static int print_program(struct tracestore *store, const struct go_program *program, struct go_places *places,
                         const struct arguments *arguments, struct json_array *array, struct error *err)
{
    CLEANUP(go_judged_release) struct go_judged judged = {0};
    CLEANUP(go_tree_release) struct go_tree tree = {0};
    const struct go_judge_listener listener = {go_tree_action, &tree};
    const struct printing printing = {&judged, array};
    int r = go_judge(store, program, places, &listener, &judged, err);

    if (r < 0)
        return r;
    r = go_tree_walk(&tree, judged.replay, &(struct go_tree_options){arguments->all, arguments->raw}, put,
                     (void *)&printing);
    return r < 0 ? error_set(err, r, NULL, "making the tree of goroutines") : 0;
}

static int run(int argc, char **argv)
{
    CLEANUP(go_judged_run_release) struct go_judged_run programs = {0};
    AUTO_STORE struct tracestore *store = NULL;
    AUTO_RUN struct tracestore_run run = {0};
    struct arguments arguments = {0};
    struct json_array array;
    struct error err = {0};
    int r;

    cli_parse(&go_tree_command, argc, argv, &arguments);
    r = cli_open_run(arguments.run, TRACESTORE_READ, &store, &run, &err);
    if (r == 0)
        r = go_programs_of(store, run.run_id, &programs, &err);
    if (r < 0)
        return cli_fail(&err);
    if (cli.json)
        cli_json_begin(&array);
    for (size_t i = 0; r == 0 && i < programs.count; i++)
        r = print_program(store, &programs.programs[i], programs.places, &arguments, cli.json ? &array : NULL,
                          &err);
    if (r < 0)
        return cli_fail(&err);
    if (cli.json)
        cli_json_end(&array);
    return cli_finish(EXIT_NOTHING_FOUND);
}

const struct command go_tree_command = {
    .name = "go tree",
    .summary = "show the creation tree of goroutines and their state",
    .argp = &argp,
    .examples =
        "Record a Go program, and show its goroutines:\n"
        "  tracectl record --go -- ./server\n"
        "  tracectl go tree latest\n",
    .run = run,
};
