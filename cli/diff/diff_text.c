/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl diff as text: what it comes to, the threads side by side, what the loops are, what is unknown. */
#include <errno.h>
#include <stdlib.h>

#include "analyzer/diff/compare_pair.h"
#include "base/text.h"
#include "cli/diff/diff_columns.h"
#include "cli/diff/diff_functions.h"
#include "cli/diff/diff_report.h"

enum { MOST_SUSPECTS = 20 };

struct text_output {
    const struct diff_report *report;
    struct cut_names cut;
    bool *wanted; /* loops of the legend */
    bool colour;
    size_t width;
};

static void text_output_release(struct text_output *output)
{
    cut_names_release(&output->cut);
    free(output->wanted);
}

static void mark_loops(struct text_output *output, const struct nlr_sequence *loops)
{
    cli_loops_mark(&output->report->input->summary, loops->elements, loops->count, output->wanted);
}

static int print_columns(struct text_output *output, const struct diff_nlr *diff,
                         const struct thread_loops *left, const struct thread_loops *right,
                         const char *left_title, const char *right_title)
{
    const struct diff_arguments *arguments = output->report->arguments;
    struct diff_columns columns = {
        .summary = &output->report->input->summary,
        .diff = diff,
        .left = left,
        .right = right,
        .left_title = left_title,
        .right_title = right_title,
        .full = arguments->full,
        .descend = arguments->descend,
        .colour = output->colour,
        .width = output->width,
    };
    int r;

    putchar('\n');
    r = diff_columns_print(&columns, &output->cut);
    putchar('\n');
    mark_loops(output, &left->loops);
    mark_loops(output, &right->loops);
    return r;
}

static int print_thread(struct text_output *output, const struct thread_diff *thread)
{
    const char *label = thread_diff_label(thread);
    AUTO_FREE char *words = NULL;

    if (!thread->normal || !thread->faulty) {
        const char *other = thread->normal ? "candidate" : "baseline";

        text_print(stdout, "thread %s exists only in the %s run%s%s%s\n\n", label,
                   thread->normal ? "baseline" : "candidate", thread->unknown ? " (unknown: the " : "",
                   thread->unknown ? other : "", thread->unknown ? " run is incomplete)" : "");
        return 0;
    }
    if (thread_diff_differs(thread)) {
        words = thread_diff_words(&output->report->input->summary, thread);
        cli_style(output->colour, CLI_BOLD);
        text_print(stdout, "thread %s differs: %s", label, words ? words : "");
        cli_style(output->colour, CLI_PLAIN);
        putchar('\n');
    } else {
        text_print(stdout, "thread %s does not differ%s\n", label,
                   thread->unknown ? " in the part that can be compared" : "");
    }
    return print_columns(output, &thread->diff, thread->normal, thread->faulty, "baseline", "candidate");
}

/* ------------------------------------------------------------------------------------------ pairs */

static int print_relation(struct text_output *output, const struct diff_pair *pair, bool faulty)
{
    const struct pair_comparison *comparison = &pair->comparison;
    const struct diff_nlr *diff = &comparison->diffs[faulty];
    const char *run = faulty ? "candidate" : "baseline";
    char titles[2][96];

    text_print(stdout, "in the %s run %s and %s ", run, pair->first, pair->second);
    if (!diff->changed)
        puts(diff->unknown ? "do not differ in the part that can be compared" : "do the same");
    else
        text_print(stdout, "differ in %.0f %% of their entries%s\n", 100 * diff_nlr_share(diff),
                   diff->unknown ? " that can be compared" : "");
    snprintf(titles[0], sizeof(titles[0]), "%s, %s", pair->first, run);
    snprintf(titles[1], sizeof(titles[1]), "%s, %s", pair->second, run);
    return print_columns(output, diff, comparison->threads[faulty][0], comparison->threads[faulty][1],
                         titles[0], titles[1]);
}

static int print_pair(struct text_output *output, const struct diff_pair *pair)
{
    int r;

    cli_style(output->colour, CLI_BOLD);
    text_print(stdout, "threads %s and %s %s", pair->first, pair->second,
               pair->comparison.changed   ? "differ from each other in another way in the candidate run"
               : pair->comparison.unknown ? "differ from each other in the same way, as far as recorded"
                                          : "differ from each other in the same way in both runs");
    cli_style(output->colour, CLI_PLAIN);
    putchar('\n');
    r = print_relation(output, pair, false);
    return r ? r : print_relation(output, pair, true);
}

/* ------------------------------------------------------------------------------------------ the report */

static void print_suspects(const struct diff_report *report)
{
    const struct run_comparison *comparison = &report->comparison;

    if (comparison->suspect_count < 2)
        return;
    text_print(stdout, "%zu of %zu threads differ%s:\n", comparison->suspect_count, comparison->count,
               comparison->ranked ? "; the most conspicuous first, with the share of changed entries"
                                  : "; most changed first");
    for (size_t i = 0; i < comparison->suspect_count && i < MOST_SUSPECTS; i++) {
        const struct thread_diff *thread = &comparison->threads[comparison->suspects[i]];

        if (comparison->ranked)
            text_print(stdout, "  %-10s %.3f  %3.0f %%\n", thread_diff_label(thread), thread->score,
                       thread->share * 100);
        else
            text_print(stdout, "  %-10s %.3f\n", thread_diff_label(thread), thread->score);
    }
    if (comparison->suspect_count > MOST_SUSPECTS)
        text_print(stdout, "  ... and %zu more\n", comparison->suspect_count - MOST_SUSPECTS);
    putchar('\n');
}

static int print_summary(const struct diff_report *report)
{
    AUTO_FREE char *text = diff_verdict_text(&report->verdict, report->input->runs[0].name,
                                             report->input->runs[report->input->count - 1].name);

    if (!text)
        return -ENOMEM;
    text_show_lines(stdout, text);
    putchar('\n');
    return 0;
}

static void print_unknown(const struct diff_report *report)
{
    const struct loop_summary *summary = &report->input->summary;
    size_t unknown = 0;

    completeness_print(report->input->completeness, report->input->count);
    cli_loops_print_gaps(summary_run(summary, false), "baseline");
    cli_loops_print_gaps(summary_run(summary, true), "candidate");
    for (size_t i = 0; i < report->comparison.count; i++)
        unknown += report->comparison.threads[i].unknown;
    if (unknown)
        text_print(stdout,
                   "unknown: %zu thread%s could not be compared completely because events are missing\n",
                   unknown, unknown == 1 ? "" : "s");
}

/* Of all threads: the summary, the threads that differ, and the differences of the first ones. */
static int print_all(struct text_output *output)
{
    const struct diff_report *report = output->report;
    const struct run_comparison *comparison = &report->comparison;
    int r = diff_functions_lead(&report->functions, report->arguments->runs);

    if (!r)
        r = print_summary(report);
    for (size_t i = 0; i < report->shown_count && !r && !cli_output_broken(); i++)
        r = print_thread(output, diff_shown(report, i));
    for (size_t i = 0; i < comparison->count && !r; i++)
        if (!comparison->threads[i].normal || !comparison->threads[i].faulty)
            r = print_thread(output, &comparison->threads[i]);
    print_suspects(report);
    return r;
}

/* Of the threads and pairs that were asked for. */
static int print_chosen(struct text_output *output)
{
    const struct diff_report *report = output->report;
    int r = 0;

    for (size_t i = 0; i < report->shown_count && !r && !cli_output_broken(); i++)
        r = print_thread(output, diff_shown(report, i));
    for (size_t i = 0; i < report->pair_count && !r && !cli_output_broken(); i++)
        r = print_pair(output, &report->pairs[i]);
    return r;
}

int diff_print_text(const struct diff_report *report)
{
    const struct diff_arguments *arguments = report->arguments;
    /* Before the pager, which is no terminal to us. */
    CLEANUP(text_output_release)
    struct text_output output = {.report = report, .colour = cli_colour(), .width = diff_columns_width()};
    struct cli_pager pager;
    int r;

    output.wanted = calloc(report->input->summary.table.number_count + 1, sizeof(*output.wanted));
    if (!output.wanted)
        return -ENOMEM;
    cli_pager_begin(&pager);
    r = arguments->thread_count || arguments->pair_count ? print_chosen(&output) : print_all(&output);
    if (!r) {
        cli_loops_print_legend(&report->input->summary, output.wanted);
        print_unknown(report);
        cut_names_print(&output.cut);
    }
    cli_pager_end(&pager);
    return r;
}
