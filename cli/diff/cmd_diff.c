/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl diff: which threads of two runs differ, and how. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/diff/compare_pair.h"
#include "analyzer/diff/compare_rank.h"
#include "analyzer/picture/diff_picture.h"
#include "analyzer/picture/flame_graph.h"
#include "base/array.h"
#include "base/error.h"
#include "cli/common/command.h"
#include "cli/common/output.h"
#include "cli/common/output_file.h"
#include "cli/diff/diff_functions.h"
#include "cli/diff/diff_report.h"

enum {
    KEY_MOST = 0x300,
    KEY_FULL,
    KEY_DESCEND,
    KEY_PAIR,
    KEY_SVG,
    KEY_FLAMEGRAPH,
    KEY_BASELINE,
    KEY_FUNCTIONS
};
/* Ranking the suspects takes time that grows with the square of the number of threads. */
enum { DEFAULT_MOST = 5, MOST_RANKED = 3000 };

static const struct argp_option options[] = {
    {"baseline", KEY_BASELINE, "RUN", 0,
     "Another baseline run: a thread that differs no more than baseline runs do is not a suspect. May "
     "be repeated",
     0},
    {"most", KEY_MOST, "N", 0, "Show the differences of the first N suspects (default 5; 0: all)", 0},
    {"full", KEY_FULL, 0, 0,
     "Show all entries, including common ones far from a difference, and long stretches in full", 0},
    {"descend", KEY_DESCEND, 0, 0, "Below each pair of differing loops, show how their bodies differ", 0},
    {"pair", KEY_PAIR, "P.T,P.T", 0,
     "Show how two threads differ from each other in the baseline run and in the candidate run "
     "(CMPdiffNLR); may be repeated",
     0},
    {"functions", KEY_FUNCTIONS, 0, 0,
     "Instead, compare the calls and times of each function, the most changed first (--full: also those that "
     "have not changed)",
     0},
    {"svg", KEY_SVG, "FILE", 0, "Also draw the shown differences into FILE (SVG)", 0},
    {"flamegraph", KEY_FLAMEGRAPH, "FILE", 0,
     "Also draw a flame graph that compares the calls of both runs into FILE (SVG)", 0},
    {0},
};

static void add_pair_argument(struct argp_state *state, struct diff_arguments *arguments, const char *text)
{
    const char *comma = strchr(text, ',');

    if (!comma || comma == text || !comma[1] || strchr(comma + 1, ','))
        argp_error(state, "--pair must be two threads, P.T,P.T, not '%s'", text);
    if (array_reserve(&arguments->pairs, &arguments->pair_capacity, arguments->pair_count + 1))
        argp_failure(state, EXIT_FAILED, ENOMEM, "--pair");
    arguments->pairs[arguments->pair_count++] = text;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct diff_arguments *arguments = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &arguments->loops;
        return 0;
    case KEY_MOST:
        arguments->most = (unsigned)cli_parse_number(state, "--most", arg, 0, UINT_MAX);
        return 0;
    case KEY_FULL:
        arguments->full = true;
        return 0;
    case KEY_DESCEND:
        arguments->descend = true;
        return 0;
    case KEY_FUNCTIONS:
        arguments->functions = true;
        return 0;
    case KEY_SVG:
        arguments->svg = arg;
        return 0;
    case KEY_FLAMEGRAPH:
        arguments->flame_graph = arg;
        return 0;
    case KEY_BASELINE:
        if (arguments->baseline_count == ARRAY_SIZE(arguments->baselines))
            argp_error(state, "--baseline was given too many times");
        arguments->baselines[arguments->baseline_count++] = arg;
        return 0;
    case KEY_PAIR:
        add_pair_argument(state, arguments, arg);
        return 0;
    case ARGP_KEY_ARG:
        if (state->arg_num >= 2)
            return ARGP_ERR_UNKNOWN; /* the rest comes as ARGP_KEY_ARGS */
        arguments->runs[state->arg_num] = arg;
        return 0;
    case ARGP_KEY_ARGS:
        arguments->threads = state->argv + state->next;
        arguments->thread_count = (size_t)(state->argc - state->next);
        return 0;
    case ARGP_KEY_END:
        if (state->arg_num < 2)
            argp_usage(state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ------------------------------------------------------------------------------------------ what to show */

static void report_release(struct diff_report *report)
{
    diff_verdict_release(&report->verdict);
    function_facts_release(&report->facts);
    function_changes_release(&report->functions);
    run_comparison_release(&report->comparison);
    for (size_t i = 0; i < report->pair_count; i++) {
        pair_comparison_release(&report->pairs[i].comparison);
        free(report->pairs[i].first);
        free(report->pairs[i].second);
    }
    free(report->pairs);
    free(report->shown);
    free(report->arguments->pairs);
}

static int no_such_thread(const struct diff_report *report, const char *label, const char *which,
                          struct error *err)
{
    const struct diff_arguments *arguments = report->arguments;

    error_say(err, -ENOENT, "no thread '%s' in %s of runs %s and %s (tracectl show RUN lists them)", label,
              which, arguments->runs[0], arguments->runs[1]);
    return -ENOENT;
}

static int choose_threads(struct diff_report *report, struct error *err)
{
    const struct diff_arguments *arguments = report->arguments;
    const struct run_comparison *comparison = &report->comparison;

    for (size_t i = 0; i < arguments->thread_count; i++) {
        size_t found = 0;

        while (found < comparison->count &&
               strcmp(thread_diff_label(&comparison->threads[found]), arguments->threads[i]) != 0)
            found++;
        if (found == comparison->count)
            return no_such_thread(report, arguments->threads[i], "one", err);
        report->shown[report->shown_count++] = found;
    }
    if (arguments->thread_count || arguments->pair_count)
        return 0;
    while (report->shown_count < comparison->suspect_count &&
           (!arguments->most || report->shown_count < arguments->most)) {
        report->shown[report->shown_count] = comparison->suspects[report->shown_count];
        report->shown_count++;
    }
    return 0;
}

static int compare_pairs(struct diff_report *report, struct error *err)
{
    const struct diff_arguments *arguments = report->arguments;

    report->pairs = calloc(arguments->pair_count + 1, sizeof(*report->pairs));
    if (!report->pairs)
        return error_no_memory(err);
    for (size_t i = 0; i < arguments->pair_count; i++) {
        struct diff_pair *pair = &report->pairs[i];
        const char *comma = strchr(arguments->pairs[i], ',');
        int r;

        report->pair_count = i + 1;
        pair->first = strndup(arguments->pairs[i], (size_t)(comma - arguments->pairs[i]));
        pair->second = strdup(comma + 1);
        if (!pair->first || !pair->second)
            return error_no_memory(err);
        r = compare_pair(&report->input->summary, pair->first, pair->second, &pair->comparison);
        if (r == -ENOENT)
            return no_such_thread(report, arguments->pairs[i], "each", err);
        if (r)
            return error_no_memory(err);
    }
    return 0;
}

/* Suspects are ranked over all filters where the runs are small and the user chose none, else of the one
 * view that is shown anyway. */
static int rank_threads(struct diff_report *report, struct error *err)
{
    const struct diff_arguments *arguments = report->arguments;
    CLEANUP(ranking_input_release) struct ranking_input all = {0};
    CLEANUP(ranking_release) struct ranking one = {0};
    struct ranking_arguments how = {
        .min_repeats = arguments->loops.min_repeats,
        .with_returns = arguments->loops.with_returns,
        .linkages = {LINKAGE_WARD}, /* no linkage changes the suspects */
        .linkage_count = 1,
        .max_bodies = {arguments->loops.max_body},
        .max_body_count = arguments->loops.max_body > 0,
    };
    bool sweep =
        !arguments->loops.filter && !arguments->loops.custom && ranking_is_cheap(&report->input->summary);
    int r;

    memcpy(how.baselines.items, arguments->baselines, sizeof(arguments->baselines));
    how.baselines.count = arguments->baseline_count;
    r = sweep ? ranking_input_read(&how, arguments->runs[0], arguments->runs[1], &all, err)
              : ranking_of_summary(&report->input->summary, &one, err);
    if (r >= 0)
        run_comparison_rank(&report->comparison, sweep ? &all.ranking : &one, 1 + arguments->baseline_count);
    return r;
}

/* Of all functions, whatever the loops are made of. */
static int compare_functions(struct diff_report *report, struct error *err)
{
    const struct loops_input *input = report->input;
    AUTO_FREE struct change_source *sources = calloc(input->count, sizeof(*sources));
    int r;

    if (!sources)
        return error_no_memory(err);
    for (size_t i = 0; i < input->count; i++)
        sources[i] = (struct change_source){input->sources[i].store, input->runs[i].run_id};
    r = function_changes_read(sources, input->count, &report->functions, err);
    if (r >= 0 && report->functions.timed)
        function_changes_order_by_time(&report->functions);
    return r;
}

static int make_report(struct diff_report *report, struct error *err)
{
    const struct loops_input *input = report->input;
    int r;

    if (compare_runs(&input->summary, &report->comparison) < 0)
        return error_no_memory(err);
    if (report->comparison.count <= MOST_RANKED || report->arguments->baseline_count) {
        r = rank_threads(report, err);
        if (r < 0)
            return r;
    }
    report->shown =
        calloc(report->comparison.count + report->arguments->thread_count + 1, sizeof(*report->shown));
    if (!report->shown)
        return error_no_memory(err);
    r = choose_threads(report, err);
    if (r >= 0)
        r = compare_pairs(report, err);
    if (r >= 0)
        r = function_facts_read(&input->summary, &input->sources[0], &input->sources[input->count - 1],
                                &report->facts, err);
    if (r >= 0)
        r = compare_functions(report, err);
    if (r >= 0 && diff_verdict_make(&input->summary, &report->comparison, &report->facts, &report->verdict))
        r = error_no_memory(err);
    return r;
}

/* With threads or pairs named, the status is about them alone. */
static bool found_difference(const struct diff_report *report)
{
    const struct diff_arguments *arguments = report->arguments;

    if (!arguments->thread_count && !arguments->pair_count)
        return report->comparison.suspect_count || report->comparison.one_sided;
    for (size_t i = 0; i < report->shown_count; i++) {
        const struct thread_diff *thread = diff_shown(report, i);

        if (thread_diff_differs(thread) || ((!thread->normal || !thread->faulty) && !thread->unknown))
            return true;
    }
    for (size_t i = 0; i < report->pair_count; i++)
        if (report->pairs[i].comparison.changed)
            return true;
    return false;
}

/* ------------------------------------------------------------------------------------------ the picture */

static int draw(const struct diff_report *report, struct error *err)
{
    const struct diff_picture picture = {
        .summary = &report->input->summary,
        .comparison = &report->comparison,
        .threads = report->shown,
        .count = report->shown_count,
        .normal_name = report->input->runs[0].name,
        .faulty_name = report->input->runs[report->input->count - 1].name,
        .full = report->arguments->full,
    };
    AUTO_FREE char *text = diff_picture_svg(&picture);

    return text ? cli_write_picture(text, report->arguments->svg, err) : error_no_memory(err);
}

/* ------------------------------------------------------------------------------------------ the command */

static const struct argp_child children[] = {
    {&cli_loops_argp, 0, NULL, 0}, {&cli_common_argp, 0, NULL, 0}, {0}};
static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "BASELINE CANDIDATE [P.T...]",
    .doc =
        "Compare two runs: a summary in a few sentences, the threads that changed most, and the loop "
        "differences of the first ones, or of threads P.T.\vThe summary lists the threads that differ, "
        "the last call that both runs made, the first call that differs, the kind of difference, and "
        "what is unknown. Renamed functions are guessed from the calls around them.\n\n"
        "Threads are matched by rank and program (see tracectl-rank(1) for matching and scores). The "
        "first suspect is the thread that stands out most from similar threads, by the consensus of many "
        "filters and attributes (small runs without --filter), otherwise the thread with the largest "
        "share of entries that occur in only one of its two loop summaries. Lines marked |, < and > "
        "differ; lines marked ? cannot be compared because events are missing, and never count as a "
        "difference. Loops that are the same, or nearly so, share a line. On a terminal the output uses "
        "the width of the terminal and goes through $PAGER; otherwise it is $COLUMNS or 132 columns "
        "wide. Names that do not fit are shortened and listed in full at the end.\n\n"
        "If both runs were recorded with --time full, the functions whose calls or times changed come first, "
        "with calls and times of the baseline -> the candidate: at most 12, those whose own time (SELF) differs most "
        "first. They are of all calls, whatever --filter says, and do not count for the exit status.\n\n"
        "With --functions, each function is a line with its calls and times, baseline -> candidate; times need "
        "record --time full. A function has changed if its calls, its total or self time, or the 99th "
        "percentile of its durations are outside of what the baseline runs have. With one baseline run, which "
        "does not show how times vary, times must differ by a fifth; times that are ranges must not overlap.\n\n"
        "Exit status: 0 no difference, 1 differences, 2 usage, 3 failure. If threads or pairs are named, "
        "the status is about them; a pair differs if its threads differ from each other in another way "
        "in one run than in the other.",
    .children = children,
};

/* Of all calls, whatever the loops are made of. */
static int draw_flame_graph(const struct diff_arguments *arguments, struct error *err)
{
    AUTO_STORE struct tracestore *baseline = NULL, *candidate = NULL;
    AUTO_RUN struct tracestore_run before = {0}, after = {0};
    struct output_file file = {0};
    int r = cli_open_run(arguments->runs[0], TRACESTORE_READ, &baseline, &before, err);

    if (r >= 0)
        r = cli_open_run(arguments->runs[1], TRACESTORE_READ, &candidate, &after, err);
    if (r >= 0)
        r = output_file_open(&file, arguments->flame_graph, err);
    if (r >= 0)
        r = flame_graph_compare(&(struct flame_graph_run){baseline, &before},
                                &(struct flame_graph_run){candidate, &after}, file.stream, err);
    return output_file_close(&file, r, err);
}

static int run_functions(const struct diff_arguments *arguments, const char *const *runs)
{
    struct error err = {0};
    bool found = false;

    if (diff_functions_print(arguments, runs, 2 + arguments->baseline_count, &found, &err) < 0)
        return cli_fail(&err);
    return cli_finish(found ? EXIT_FOUND : EXIT_NOTHING_FOUND);
}

static int run(int argc, char **argv)
{
    CLEANUP(cli_loops_release) struct loops_input input = {0};
    struct diff_arguments arguments = {.most = DEFAULT_MOST};
    CLEANUP(report_release) struct diff_report report = {.arguments = &arguments, .input = &input};
    const char *runs[RANKING_MOST_RUNS + 2];
    struct error err = {0};
    int r;

    cli_parse(&cmd_diff, argc, argv, &arguments);
    runs[0] = arguments.runs[0];
    memcpy(runs + 1, arguments.baselines, arguments.baseline_count * sizeof(*runs));
    runs[1 + arguments.baseline_count] = arguments.runs[1];
    if (arguments.functions)
        return run_functions(&arguments, runs);
    r = cli_loops_read(&arguments.loops, runs, 2 + arguments.baseline_count, &input, &err);
    if (r >= 0)
        r = make_report(&report, &err);
    if (r >= 0 && arguments.svg)
        r = draw(&report, &err);
    if (r >= 0 && arguments.flame_graph)
        r = draw_flame_graph(&arguments, &err);
    if (r < 0)
        return cli_loops_fail(r, &err);
    if (cli.json)
        diff_print_json(&report);
    else if (diff_print_text(&report) < 0)
        return error_no_memory(&err), cli_fail(&err);
    return cli_finish(found_difference(&report) ? EXIT_FOUND : EXIT_NOTHING_FOUND);
}

const struct command cmd_diff = {
    .name = "diff",
    .summary = "compare two runs: which threads changed, and how",
    .argp = &argp,
    .examples =
        "Compare two runs:\n"
        "  tracectl diff good bad\n"
        "Compare only thread 5.0, and draw its differences:\n"
        "  tracectl diff good bad 5.0 --svg diff.svg\n"
        "Compare the calls and times of functions:\n"
        "  tracectl diff --functions good bad\n"
        "Take normal run-to-run variation into account:\n"
        "  tracectl diff --baseline good2 --baseline good3 good bad\n",
    .run = run,
};
