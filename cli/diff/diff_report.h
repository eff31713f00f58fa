/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of `tracectl diff` share: the comparison, and the ways to show it. */
#ifndef TRACECTL_CLI_DIFF_DIFF_REPORT_H
#define TRACECTL_CLI_DIFF_DIFF_REPORT_H

#include "analyzer/diff/compare.h"
#include "analyzer/diff/compare_pair.h"
#include "analyzer/diff/verdict.h"
#include "analyzer/times/function_changes.h"
#include "cli/analysis/loops.h"
#include "cli/cluster/ranking_input.h"

struct diff_arguments {
    struct loops_arguments loops;
    const char *runs[2];
    const char *baselines[RANKING_MOST_RUNS];
    size_t baseline_count;
    char **threads; /* in argv */
    size_t thread_count;
    const char **pairs; /* "P.T,P.T" */
    size_t pair_count, pair_capacity;
    const char *svg;         /* file, NULL: none */
    const char *flame_graph; /* the same */
    unsigned most;
    bool full, descend, functions;
};

struct diff_pair {
    char *first, *second; /* labels */
    struct pair_comparison comparison;
};

struct diff_report {
    const struct diff_arguments *arguments;
    const struct loops_input *input;
    struct run_comparison comparison;
    struct function_facts facts;
    struct function_changes functions; /* by the time they take more or less */
    struct diff_verdict verdict;
    size_t *shown; /* indices of the threads whose diffNLR is wanted, in order */
    size_t shown_count;
    struct diff_pair *pairs;
    size_t pair_count;
};

static inline const struct thread_diff *diff_shown(const struct diff_report *report, size_t i)
{
    return &report->comparison.threads[report->shown[i]];
}

/* The whole report on stdout, through the pager where stdout is a terminal. Fails with -ENOMEM. */
int diff_print_text(const struct diff_report *report);
void diff_print_json(const struct diff_report *report);
/* {"text", "groups", ...}: the key "summary" of the JSON document. */
json_t *diff_summary_json(const struct diff_report *report);
/* [{"op", "entries"}]: the edits between two threads or bodies, but for unknown ones. `ops` are the words for
 * DIFF_COMMON, DIFF_NORMAL and DIFF_FAULTY. */
json_t *diff_edits_json(const struct loop_summary *summary, const struct diff_nlr *diff,
                        const struct nlr_sequence *normal, const struct nlr_sequence *faulty,
                        const char *const ops[3]);
/* Appends the unknown edits to `array`, each placed by the number of edits of diff_edits_json before it. */
void diff_unknown_json(const struct loop_summary *summary, const struct diff_nlr *diff,
                       const struct nlr_sequence *normal, const struct nlr_sequence *faulty,
                       const char *thread, const char *const ops[3], json_t *array);
json_t *diff_pairs_json(const struct diff_report *report);

#endif
