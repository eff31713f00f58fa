/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl stat: where the threads of processes that hang are, and which of them is behind. */
#include <errno.h>
#include <limits.h>

#include "analyzer/order/recorded.h"
#include "analyzer/picture/order_picture.h"
#include "base/array.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/completeness.h"
#include "cli/common/output.h"
#include "cli/live/stat_live.h"
#include "cli/live/stat_order.h"
#include "cli/live/stat_stacks.h"

enum { KEY_SVG = 0x300, BOXES_MOST = 1000 };

struct stat_input {
    struct stat_live_options live;
    bool everything, stacks;
    const char *run; /* NULL: live processes */
    uint64_t at_ns;  /* 0: at the end of the run */
    const char *svg; /* where the picture goes; NULL: nowhere */
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct stat_input *input = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[1] = &input->live;
        return 0;
    case 'a':
        input->everything = true;
        return 0;
    case 's':
        input->stacks = true;
        return 0;
    case 'A':
        input->at_ns = cli_parse_number(state, "--at", arg, 1, ULONG_MAX - 1);
        return 0;
    case KEY_SVG:
        input->svg = arg;
        return 0;
    case ARGP_KEY_ARG:
        if (pid_list_add_word(&input->live.pids, arg, state))
            return 0;
        if (input->run)
            argp_error(state, "unexpected argument '%s'", arg);
        input->run = arg;
        return 0;
    case ARGP_KEY_END:
        if (!input->live.pids.count && !input->run)
            argp_error(state,
                       "no process and no run given (stat -p PID, or stat RUN; tracectl runs lists runs)");
        if (input->live.pids.count && input->run)
            argp_error(state, "unexpected argument '%s' (name either processes or a run)", input->run);
        if (input->at_ns && !input->run)
            argp_error(state, "--at needs a run");
        if (input->svg && input->stacks)
            argp_error(state, "--svg and --stacks cannot be combined: --svg draws the order of threads");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {
    {"all", 'a', 0, 0, "Show all branches, not only those that contain the least advanced threads", 0},
    {"at", 'A', "NS", 0,
     "With a run: show the threads at this time, in nanoseconds since 1970 (as in the SQL tables) or, "
     "for smaller numbers, since the start of the run (default: at its end)",
     0},
    {"stacks", 's', 0, 0, "Print complete stacks, equal ones once, without an order", 0},
    {"svg", KEY_SVG, "FILE", 0, "Also draw the tree into FILE (SVG)", 0},
    {0},
};
static const struct argp_child children[] = {
    {&cli_common_argp, 0, NULL, 0}, {&stat_live_argp, 0, NULL, 0}, {0}};
static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "-p PID|NAME...\nRUN",
    .doc =
        "Show the stacks of the threads of live processes, or of a recorded run, merged by call path and "
        "ordered by progress.\vThreads are merged by their open calls and ordered where their call paths "
        "diverge: first by the iterations of the enclosing loops (read from variables that every "
        "iteration changes by the same amount), then by the order of places in the function. T0 is the "
        "least advanced of its siblings. '~' marks threads on another branch or in another function than "
        "one of the others, so that there is no order; '?' marks threads whose rank is valid only if "
        "they are in the same iteration of a loop without such a variable.\n\n"
        "For a recorded run, the open calls at its end (or --at a time) are used; their positions and "
        "iterations are derived from the earlier calls and from the program file, which must still "
        "exist. Record with --returns probe to know which calls never returned.\n\n"
        "Sleeping threads are not stopped, and their system calls are not interrupted. Running threads "
        "are paused while their stack is copied, typically for under 1 ms. If tracectl is killed, the "
        "kernel resumes them.\n\n"
        "For Go programs, running and waiting goroutines are shown instead of threads.",
    .children = children,
};

static int draw(const struct stat_input *input, const struct order_tree *order, struct error *err)
{
    const struct order_picture picture = {order, input->everything, BOXES_MOST, SVG_DOCUMENT};
    size_t undrawn = 0;
    AUTO_FREE char *svg = order_picture_svg(&picture, &undrawn);
    int r = svg ? cli_write_picture(svg, input->svg, err) : error_no_memory(err);

    if (!r && undrawn && cli.verbosity >= 0)
        text_print(stderr, "tracectl: %zu branches do not fit into the picture %s\n", undrawn, input->svg);
    return r;
}

static int print_json(const struct stack_sampler *sampler, const struct sample_set *set,
                      const struct order_tree *order)
{
    AUTO_JSON json_t *document =
        json_pack("{s:o, s:o, s:o}", "stacks", stat_stacks_json(set), "sampling",
                  stat_live_json_cost(sampler), "unknown", stat_live_json_unknown(sampler));

    json_object_update_new(document, stat_order_json(order));
    cli_json_print(document);
    return document ? 0 : -ENOMEM;
}

static int print(const struct stat_input *input, struct stack_sampler *sampler, const struct sample_set *set,
                 struct error *err)
{
    const struct frame_source frames = stack_sampler_source(sampler);
    const struct order_source source = {.frames = &frames};
    AUTO_ORDER_TREE struct order_tree *order = NULL;
    int r;

    if (!cli.json)
        stat_live_print_unknown(sampler);
    if (!cli.json && input->stacks)
        return stat_stacks_text(stdout, set);
    r = order_tree_new(set, &source, input->everything, &order, err);
    if (!r && input->svg)
        r = draw(input, order, err);
    if (r < 0)
        return r;
    return cli.json ? print_json(sampler, set, order) : stat_order_text(stdout, order, input->everything);
}

static int run_live(const struct stat_input *input, struct error *err)
{
    struct stack_sampler *sampler = NULL;
    struct sample_set *set = NULL;
    int r = stat_live_sample(&input->live, &sampler, &set, err);

    if (!r)
        r = print(input, sampler, set, err);
    sample_set_free(set);
    stack_sampler_free(sampler);
    return r;
}

/* What is not certain about the open calls of a run. */
static void print_doubts(const struct recorded_sample *recorded)
{
    if (recorded->uncertain)
        text_print(
            stderr,
            "tracectl: in %zu of %zu threads the innermost calls may already have returned (record with "
            "--returns probe)\n",
            recorded->uncertain, recorded->set->thread_count);
}

static int print_recorded(const struct stat_input *input, const struct recorded_sample *recorded,
                          const struct completeness *completeness, struct error *err)
{
    AUTO_ORDER_TREE struct order_tree *order = NULL;
    AUTO_JSON json_t *document = NULL;
    int r;

    if (!cli.json) {
        print_doubts(recorded);
        completeness_print(completeness, 1);
    }
    if (!cli.json && input->stacks)
        return stat_stacks_text(stdout, recorded->set);
    r = order_tree_new(recorded->set, &recorded->source, input->everything, &order, err);
    if (!r && input->svg)
        r = draw(input, order, err);
    if (r < 0)
        return r;
    if (!cli.json)
        return stat_order_text(stdout, order, input->everything);
    document = stat_order_json(order);
    if (!document)
        return -ENOMEM;
    json_object_set_new(document, "stacks", stat_stacks_json(recorded->set));
    json_object_set_new(document, "uncertain", json_integer((json_int_t)recorded->uncertain));
    json_object_set_new(document, "unplaced", json_integer((json_int_t)recorded->unplaced));
    json_object_set_new(document, "completeness", completeness_json(completeness, 1));
    cli_json_print(document);
    return 0;
}

static int run_recorded(const struct stat_input *input, struct error *err)
{
    AUTO_RECORDED_SAMPLE struct recorded_sample *recorded = NULL;
    AUTO_STORE struct tracestore *store = NULL;
    AUTO_RUN struct tracestore_run found = {0};
    struct completeness completeness;
    uint64_t at_ns = input->at_ns;
    int r = cli_open_run(input->run, TRACESTORE_READ, &store, &found, err);

    if (r == 0)
        r = completeness_read(store, found.run_id, &completeness, err);
    if (r == 0 && at_ns && at_ns < found.started_ns)
        at_ns += found.started_ns;
    if (r == 0)
        r = recorded_sample_new(store, found.run_id, at_ns, &recorded, err);
    return r == 0 ? print_recorded(input, recorded, &completeness, err) : r;
}

static int run(int argc, char **argv)
{
    struct stat_input input = {0};
    struct error err = {0};
    int r;

    stat_live_defaults(&input.live);
    cli_parse(&cmd_stat, argc, argv, &input);
    r = input.run ? run_recorded(&input, &err) : run_live(&input, &err);
    stat_live_options_release(&input.live);
    if (r == -ENOMEM)
        error_no_memory(&err);
    return r ? cli_fail(&err) : cli_finish(EXIT_NOTHING_FOUND);
}

const struct command cmd_stat = {
    .name = "stat",
    .summary = "show live stacks, and which thread is holding up the others",
    .argp = &argp,
    .examples =
        "Show the stacks of a process that hangs, ordered by progress:\n"
        "  tracectl stat -p solver\n"
        "Print the complete stacks of all threads:\n"
        "  tracectl stat -s -p 1234\n"
        "Show all ranks of an MPI job by its launcher:\n"
        "  tracectl stat -p $(pidof mpiexec)\n",
    .run = run,
};
