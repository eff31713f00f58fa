/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl report: what is known of a run or a comparison, as one page in HTML. */
#include <errno.h>
#include <string.h>

#include "analyzer/report/html_report.h"
#include "base/error.h"
#include "cli/cluster/ranking_input.h"
#include "cli/common/command.h"
#include "cli/common/output_file.h"
#include "cli/report/report_goroutines.h"
#include "cli/report/report_order.h"

struct report_arguments {
    struct ranking_arguments ranking;
    const char *runs[2];
    size_t run_count;
    const char *output;
};

static const struct argp_option options[] = {
    {"output", 'o', "FILE", 0, "Write the page to FILE; - is standard output", 0},
    {0},
};

/* One run has no sweep: what would be tried one after the other must be one thing. */
static void check_one_run(struct argp_state *state, const struct report_arguments *arguments)
{
    const struct ranking_arguments *ranking = &arguments->ranking;

    if (ranking->baselines.count)
        argp_error(state, "--baseline needs two runs");
    if (ranking->filters.count > 1 || ranking->max_body_count > 1 || ranking->attribute_count > 1 ||
        ranking->linkage_count > 1)
        argp_error(state,
                   "a report of one run accepts only one --filter, one --k, one --attributes and "
                   "one --linkage");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct report_arguments *arguments = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &arguments->ranking;
        return 0;
    case 'o':
        arguments->output = arg;
        return 0;
    case ARGP_KEY_ARG:
        if (state->arg_num >= 2)
            argp_usage(state);
        arguments->runs[arguments->run_count++] = arg;
        return 0;
    case ARGP_KEY_END:
        if (!arguments->run_count)
            argp_usage(state);
        if (!arguments->output)
            argp_error(state, "no output file given (-o FILE)");
        else if (cli.json && !strcmp(arguments->output, "-"))
            argp_error(state, "--json and -o - cannot be combined: both print on standard output");
        if (arguments->run_count == 1)
            check_one_run(state, arguments);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ------------------------------------------------------------------------------------------ the file */

static int write_file(const struct report_arguments *arguments, const struct html_report *report,
                      struct error *err)
{
    struct output_file file = {0};
    int r = output_file_open(&file, arguments->output, err);

    if (r == 0)
        r = html_report_write(report, file.stream, err);
    return output_file_close(&file, r, err);
}

static int print_result(const struct report_arguments *arguments, const struct loops_input *input,
                        const struct html_report *report)
{
    AUTO_JSON json_t *document = NULL;

    if (cli.json) {
        document = json_pack("{s:o, s:I, s:I, s:o}", "file", cli_json_text(arguments->output), "runs",
                             (json_int_t)report->run_count, "suspects", (json_int_t)report->suspects,
                             "completeness", completeness_json(input->completeness, input->count));
        cli_json_print(document);
    }
    return cli_finish(EXIT_NOTHING_FOUND);
}

static int write_report(const struct report_arguments *arguments, const struct loops_input *input,
                        const struct html_report *of_runs)
{
    const struct loop_source *last = &of_runs->sources[of_runs->run_count - 1];
    struct report_goroutines goroutines = {last->store, last->run->run_id};
    AUTO_FREE char(*complete)[HTML_REPORT_LINE] = calloc(input->count, sizeof(*complete));
    CLEANUP(report_order_release) struct report_order order = {0};
    struct html_report report = *of_runs;
    struct error err = {0};
    int r = report_has_goroutines(&goroutines, &err);

    if (!complete)
        r = error_no_memory(&err);
    for (size_t i = 0; complete && i < input->count; i++)
        completeness_text(&input->completeness[i], complete[i], sizeof(complete[i]));
    report.complete = (const char(*)[HTML_REPORT_LINE])complete;
    if (r > 0) {
        report.write_goroutines = report_write_goroutines;
        report.context = &goroutines;
    }
    if (r >= 0)
        r = report_order_read(last->store, last->run->run_id, &order, &err);
    report.ends = order.ends;
    report.order = order.order;
    if (r >= 0)
        r = strcmp(arguments->output, "-") != 0 ? write_file(arguments, &report, &err)
                                                : html_report_write(&report, stdout, &err);
    return r < 0 ? cli_fail(&err) : print_result(arguments, input, &report);
}

/* ------------------------------------------------------------------------------------------ one run */

static int report_one(const struct report_arguments *arguments)
{
    const struct ranking_arguments *ranking = &arguments->ranking;
    const struct loops_arguments loops = {
        .filter = ranking->filters.count ? ranking->filters.items[0] : NULL,
        .filter_file = ranking->filter_file,
        .custom = ranking->custom,
        .max_body = ranking->max_body_count ? ranking->max_bodies[0] : 0,
        .min_repeats = ranking->min_repeats,
        .with_returns = ranking->with_returns,
    };
    CLEANUP(cli_loops_release) struct loops_input input = {0};
    struct error err = {0};
    int r = cli_loops_read(&loops, arguments->runs, 1, &input, &err);
    struct html_report report = {
        .sources = input.sources,
        .run_count = 1,
        .summary = &input.summary,
        .filter = loops.filter,
        .max_body = loops.max_body ? loops.max_body : NLR_DEFAULT_BODY,
        .attributes = ranking->attribute_count ? ranking->attributes[0]
                                               : (struct attribute_kind){ATTRIBUTE_SINGLE, FREQUENCY_NONE},
        .linkage = ranking->linkage_count ? ranking->linkages[0] : LINKAGE_WARD,
    };

    return r < 0 ? cli_loops_fail(r, &err) : write_report(arguments, &input, &report);
}

/* ------------------------------------------------------------------------------------------ comparisons */

/* How well a combination's suspects are those of the consensus: 0 to 1. */
static double agreement(const struct ranking *ranking, size_t suspects, const struct ranking_row *row)
{
    size_t common = 0;

    for (size_t i = 0; i < suspects; i++)
        for (size_t j = 0; j < row->thread_count; j++)
            common += ranking->threads.consensus[i].object == row->threads[j];
    return suspects + row->thread_count ? (double)common / (double)(suspects + row->thread_count - common)
                                        : 1;
}

/* The combination that the pictures show: of those of the first filter the one that agrees best with all. Of
 * equals the one with the lowest B-score, which comes first. */
static const struct ranking_row *choose_row(const struct ranking *ranking, size_t suspects)
{
    const struct ranking_row *best = NULL;
    double best_agreement = -1;

    for (size_t i = 0; i < ranking->row_count; i++) {
        const struct ranking_row *row = &ranking->rows[i];
        double agrees = agreement(ranking, suspects, row);

        if (row->view || agrees <= best_agreement)
            continue;
        best = row;
        best_agreement = agrees;
    }
    return best;
}

static int report_comparison(const struct report_arguments *arguments)
{
    CLEANUP(ranking_input_release) struct ranking_input input = {0};
    const struct ranking_row *row;
    size_t suspects;
    struct error err = {0};
    int r = ranking_input_read(&arguments->ranking, arguments->runs[0], arguments->runs[1], &input, &err);

    if (r < 0)
        return cli_loops_fail(r, &err);
    suspects = ranking_suspects(&input.ranking.threads);
    row = choose_row(&input.ranking, suspects);
    return write_report(arguments, &input.runs,
                        &(struct html_report){
                            .sources = input.runs.sources,
                            .run_count = input.runs.count,
                            .summary = input.views[row->view].summary,
                            .filter = input.views[row->view].filter,
                            .max_body = input.views[row->view].max_body,
                            .attributes = row->attributes,
                            .linkage = row->linkage,
                            .ranking = &input.ranking,
                            .views = input.views,
                            .shown_row = row,
                            .suspects = suspects,
                        });
}

/* ------------------------------------------------------------------------------------------ the command */

static int run(int argc, char **argv)
{
    struct report_arguments arguments = {0};

    cli_parse(&cmd_report, argc, argv, &arguments);
    return arguments.run_count == 1 ? report_one(&arguments) : report_comparison(&arguments);
}

static const struct argp_child children[] = {
    {&ranking_argp, 0, NULL, 0}, {&cli_common_argp, 0, NULL, 2}, {0}};

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "BASELINE CANDIDATE -o FILE\nRUN -o FILE",
    .doc =
        "Write a report about one run, or about two runs, as a self-contained HTML file without scripts "
        "or network access.\vFor two runs: a summary, facts and losses, the ranking, the differences of "
        "the suspects (diffNLR), similarity matrices of both runs and their difference, dendrograms with "
        "their B-score, concept lattices, and the loops. For one run: facts and losses, similarities, "
        "dendrogram, lattice and loops. If calls were open at the end (of the second run), the least "
        "advanced threads. If goroutines were recorded (in the second run), the verdict, their creation "
        "tree and timeline.\n\n"
        "Summary, pictures and loops use the first --filter (default: everything); the pictures use that "
        "combination of tracectl-rank(1) whose suspects are closest to the consensus. Large runs are "
        "folded: similar threads share a row, and the page lists what it omits.\n\n"
        "Exit status: 0 the page is written, whatever it reports; 2 usage, 3 failure.",
    .children = children,
};

const struct command cmd_report = {
    .name = "report",
    .summary = "write an HTML report about a run or a comparison",
    .argp = &argp,
    .examples =
        "Write a report about two runs:\n"
        "  tracectl report good bad -o report.html\n"
        "Write a report about one run:\n"
        "  tracectl report latest -o run.html\n",
    .run = run,
};
