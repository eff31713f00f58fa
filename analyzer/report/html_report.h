/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is known of a run, or of a comparison of runs, as one page: facts, what was not seen, a summary in
 * plain words, the ranking, similarities, clusters, concept lattices, diffNLR and loops. The page needs
 * nothing but itself, and no scripts.
 *
 * Its size is bounded however many threads there are: threads that are alike share a row, of longer tables
 * and larger pictures the part that matters most is shown, and each says what it leaves out.
 */
#ifndef TRACECTL_ANALYZER_REPORT_HTML_REPORT_H
#define TRACECTL_ANALYZER_REPORT_HTML_REPORT_H

#include <stdio.h>

#include "analyzer/order/recorded.h"
#include "analyzer/ranking/ranking.h"

enum { HTML_REPORT_LINE = 256 };

struct html_report {
    const struct loop_source *sources; /* one run; or the normal ones, the faulty one last */
    size_t run_count;
    const char (*complete)[HTML_REPORT_LINE]; /* how much of each run was seen; "": all */

    /* What pictures, loops and differences are made with, of these runs. */
    const struct loop_summary *summary;
    const char *filter; /* as the user spelt it; NULL: everything */
    uint32_t max_body;
    struct attribute_kind attributes;
    enum linkage_method linkage;

    /* Of two runs and more: all combinations, and which of them the pictures are made with. */
    const struct ranking *ranking;
    const struct ranking_view *views;
    const struct ranking_row *shown_row; /* NULL: none of them */
    size_t suspects;                     /* threads at the head of the consensus that are suspects */

    /* Writes what is known of the goroutines of the (last) run; NULL: none were recorded. */
    int (*write_goroutines)(void *context, FILE *out, struct error *err);
    void *context;

    /* Where the threads of the (last) run were at its end, and in which order; NULL: nothing was open. */
    const struct recorded_sample *ends;
    const struct order_tree *order;
};

/* Writes the page. The caller looks after write errors (ferror). Fails with -ENOMEM, -EIO, or what reading
 * the stores met. */
int html_report_write(const struct html_report *report, FILE *out, struct error *err);

#endif
