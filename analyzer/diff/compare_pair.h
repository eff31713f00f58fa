/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Two threads of a comparison against each other. */
#ifndef TRACECTL_ANALYZER_DIFF_COMPARE_PAIR_H
#define TRACECTL_ANALYZER_DIFF_COMPARE_PAIR_H

#include "analyzer/diff/diff_nlr.h"
#include "analyzer/loops/loop_summary.h"

/* Two threads against each other, in the normal run and in the faulty one: CMPdiffNLR of the DiffTrace draft
 * (section III.C, figures 19 and 20). In `normal` the first thread is the normal side and the second one the
 * faulty side of diff_nlr, and so in `faulty`. */
struct pair_comparison {
    const struct thread_loops *threads[2][2]; /* [run][first, second] */
    struct diff_nlr diffs[2];                 /* [run] */
    /* Some difference between the two is in one of the runs only, and the other run saw all there is to
     * see. */
    bool changed;
    bool unknown; /* something could not be compared in one of the runs */
};

/* Fails with -ENOENT (one of the labels is not in both runs) or -ENOMEM. Release what a success returned. */
int compare_pair(const struct loop_summary *summary, const char *first, const char *second,
                 struct pair_comparison *ret_pair);
void pair_comparison_release(struct pair_comparison *pair);

#endif
