/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl cascade: loops that would delay a function of another job, if the workload were larger. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/analysis/cascade_output.h"
#include "cli/analysis/loops.h"
#include "cli/common/command.h"

enum {
    KEY_SINK = 'S',
    KEY_SIZES = 0x100,
    KEY_HOPS,
    KEY_SVG,
    KEY_NO_CONCURRENCY,
    KEY_NO_ORIGIN,
    KEY_NO_LOOP,
    KEY_DECLARED
};

struct cascade_arguments {
    const char *runs[GROWTH_MOST_RUNS * TRACE_MOST_PARTS]; /* parts of one test stand side by side */
    size_t test_of[GROWTH_MOST_RUNS * TRACE_MOST_PARTS];
    size_t run_count, test_count;
    uint64_t sizes[GROWTH_MOST_RUNS];
    size_t size_count;
    const char *sink, *svg;
    struct cascade_options options;
};

static const struct argp_option options[] = {
    {"sink", KEY_SINK, "FUNC", 0, "The function whose delay is predicted", 0},
    {"sizes", KEY_SIZES, "N[,N...]", 0, "Workload size of each run (default: the tag 'size' of each run)", 0},
    {"must-hops", KEY_HOPS, "N", 0, "Maximum number of causes in other threads per chain (default 2)", 0},
    {"declared-handlers", KEY_DECLARED, 0, 0,
     "Use only event handlers declared when recording (record --handler)", 0},
    {"svg", KEY_SVG, "FILE", 0, "Also draw the chains into FILE (SVG)", 0},
    {"no-concurrency-check", KEY_NO_CONCURRENCY, 0, 0,
     "Also consider critical sections that can never run at the same time as rivals", 1},
    {"no-origin-analysis", KEY_NO_ORIGIN, 0, 0, "Also report loops that delay their own job", 1},
    {"no-loop-analysis", KEY_NO_LOOP, 0, 0, "Also consider loops that do not grow with the workload", 1},
    {0},
};

/* ------------------------------------------------------------------------------------------ arguments */

static void parse_sizes(struct cascade_arguments *arguments, char *text, const struct argp_state *state)
{
    char *rest = text, *word;

    while ((word = strsep(&rest, ","))) {
        if (arguments->size_count == GROWTH_MOST_RUNS)
            argp_error(state, "--sizes has more than %d numbers", GROWTH_MOST_RUNS);
        arguments->sizes[arguments->size_count++] = cli_parse_number(state, "--sizes", word, 1, UINT32_MAX);
    }
}

/* "RUN", or "RUN+RUN": recorded at the same time. */
static void add_test(struct cascade_arguments *arguments, char *text, const struct argp_state *state)
{
    size_t parts = 0;
    char *part;

    if (arguments->test_count == GROWTH_MOST_RUNS)
        argp_error(state, "more than %d runs", GROWTH_MOST_RUNS);
    while ((part = strsep(&text, "+"))) {
        if (parts++ == TRACE_MOST_PARTS)
            argp_error(state, "more than %d runs of one test", TRACE_MOST_PARTS);
        arguments->test_of[arguments->run_count] = arguments->test_count;
        arguments->runs[arguments->run_count++] = part;
    }
    arguments->test_count++;
}

static void check(const struct cascade_arguments *arguments, struct argp_state *state)
{
    if (!arguments->run_count)
        argp_error(state, "no RUN");
    if (!arguments->sink)
        argp_error(state, "--sink is missing (the function whose delay is predicted)");
    if (arguments->size_count && arguments->size_count != arguments->test_count)
        argp_error(state, "--sizes has %zu numbers for %zu runs", arguments->size_count,
                   arguments->test_count);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct cascade_arguments *arguments = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        arguments->options = (struct cascade_options){
            {SEARCH_MUST_HOPS, true}, .origins = true, .loops = true, .recognise = true};
        return 0;
    case KEY_SINK:
        arguments->sink = arg;
        return 0;
    case KEY_SIZES:
        parse_sizes(arguments, arg, state);
        return 0;
    case KEY_HOPS:
        arguments->options.search.must_hops =
            (unsigned)cli_parse_number(state, "--must-hops", arg, 0, SEARCH_MOST_LINKS);
        return 0;
    case KEY_SVG:
        arguments->svg = arg;
        return 0;
    case KEY_DECLARED:
        arguments->options.recognise = false;
        return 0;
    case KEY_NO_CONCURRENCY:
        arguments->options.search.concurrency = false;
        return 0;
    case KEY_NO_ORIGIN:
        arguments->options.origins = false;
        return 0;
    case KEY_NO_LOOP:
        arguments->options.loops = false;
        return 0;
    case ARGP_KEY_ARG:
        add_test(arguments, arg, state);
        return 0;
    case ARGP_KEY_END:
        check(arguments, state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    options,
    parse,
    "RUN[+RUN...] [RUN[+RUN...]...]",
    "Predict which loops would slow down FUNC as the workload grows.\vRecord small runs of different "
    "sizes with --sync. A loop is a source if it takes time (input, output, sleeping, waiting) and its "
    "iterations grow from run to run. Starting at FUNC, tracectl follows the locks and threads that it "
    "may wait for and the messages, signals and events that must come before; it reports each chain that "
    "leads to such a loop of another job, even if it did not happen in any run. A single run shows no "
    "growth: its loops are only possible sources. RUN+RUN joins processes of one test that were recorded "
    "separately.\n\n"
    "Exit status 1: a cascade is reported.",
    .children = cli_common_children,
};

/* ------------------------------------------------------------------------------------------ running */

/* The number that the run's tag 'size' is; 0: it has none. */
static int tagged_size(struct tracestore *store, int64_t run_id, uint64_t *ret_size, struct error *err)
{
    AUTO_STATEMENT *statement = NULL;
    int r = cli_prepare(store, &statement, err,
                        "SELECT value FROM main.tags WHERE run_id = ?1 AND key = 'size'", 1, run_id);

    if (r == 0)
        r = cli_step(statement, "t", err);
    *ret_size = r == 0 ? strtoull(cli_text(statement, 0), NULL, 10) : 0;
    return r < 0 ? r : 0;
}

/* Whether both are the same store, opened twice. */
static bool is_same_store(struct tracestore *a, struct tracestore *b)
{
    return !strcmp(sqlite3_db_filename(tracestore_db(a), "main"),
                   sqlite3_db_filename(tracestore_db(b), "main"));
}

static int add_part(struct cascade_source *source, const struct loop_source *from, struct error *err)
{
    int r = 0;

    if (!source->parts.count)
        source->store = from->store;
    else if (!is_same_store(source->store, from->store))
        return error_say(err, -EINVAL, "joining run %s with others: they are in different stores",
                         from->run->name);
    if (!source->size)
        r = tagged_size(from->store, from->run->run_id, &source->size, err);
    source->parts.runs[source->parts.count++] = from->run->run_id;
    return r;
}

static int find(const struct cascade_arguments *arguments, const struct loops_input *input,
                struct cascade_result *ret_result, struct error *err)
{
    struct cascade_source sources[GROWTH_MOST_RUNS] = {0};
    int r = 0;

    for (size_t i = 0; i < arguments->size_count; i++)
        sources[i].size = arguments->sizes[i];
    for (size_t i = 0; i < input->count && r == 0; i++)
        r = add_part(&sources[arguments->test_of[i]], &input->sources[i], err);
    if (r < 0)
        return r;
    return cascades_find(sources, arguments->test_count, arguments->sink, &arguments->options, ret_result,
                         err);
}

static int run(int argc, char **argv)
{
    CLEANUP(cli_runs_close) struct loops_input input = {0};
    CLEANUP(cascade_result_release) struct cascade_result result = {0};
    struct cascade_arguments arguments = {0};
    struct error err = {0};
    int r;

    cli_parse(&cmd_cascade, argc, argv, &arguments);
    r = cli_runs_open(arguments.runs, arguments.run_count, &input, &err);
    if (r >= 0)
        r = find(&arguments, &input, &result, &err);
    if (r >= 0 && arguments.svg)
        r = cli_cascade_draw(&result, arguments.sink, arguments.svg, &err);
    if (r < 0)
        return cli_fail(&err);
    if (cli.json)
        cli_cascade_json(&result, &input, arguments.sink);
    else
        cli_cascade_text(&result, &input, arguments.sink);
    return cli_finish(result.count ? EXIT_FOUND : EXIT_NOTHING_FOUND);
}

const struct command cmd_cascade = {
    .name = "cascade",
    .summary = "predict which loops slow down a function as the workload grows",
    .argp = &argp,
    .examples =
        "Record two sizes of a workload, and predict delays of send_heartbeat:\n"
        "  tracectl record --sync -n small --tag size=10 -- ./service 10\n"
        "  tracectl record --sync -n large --tag size=20 -- ./service 20\n"
        "  tracectl cascade --sink send_heartbeat small large\n",
    .run = run,
};
