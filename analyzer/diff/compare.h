/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Two runs, thread by thread: who differs, by how much, and what that is in plain words. */
#ifndef TRACECTL_ANALYZER_DIFF_COMPARE_H
#define TRACECTL_ANALYZER_DIFF_COMPARE_H

#include "analyzer/diff/diff_nlr.h"
#include "analyzer/loops/loop_summary.h"

struct thread_diff {
    const struct thread_loops *normal,
        *faulty;          /* of the summary; one is NULL when a thread is on one side only */
    struct diff_nlr diff; /* empty when one is NULL */
    bool hang_differs;    /* one side came back from its last call, the other one known not to */
    bool unknown;         /* something could not be compared; for a thread on one side only: the other run is
                             incomplete */
    /* Changed entries of both summaries, as a share of all that could be compared: 0 to 1. A last call that
     * never returned counts as one changed entry. A thread on one side only has none. */
    double share;
    bool ranked;  /* the ranking has a score of it */
    double score; /* by which suspects are ordered: the ranking's (0 for a thread that it leaves out), once
                     there is one (compare_rank.c), until then the share */
    /* The share in events, where loops of one body differ by their iterations only: decides between equal
     * scores, so that of threads that stopped in one loop the one that came least far is first. */
    double event_share;
};

struct run_comparison {
    struct thread_diff *threads; /* in order of their labels */
    size_t count;
    size_t *suspects; /* indices of the matched threads that differ, highest score first, then share, then
                         event_share, then label */
    size_t suspect_count;
    size_t usual; /* matched threads that differ as normal runs do: no suspects */
    size_t aside; /* matched threads that differ and launched an MPI program: no suspects, there being several
                     normal runs, of which nobody has looked how these threads vary */
    bool ranked;
    size_t one_sided; /* threads on one side only, those that are unknown not counted */
};

static inline const char *thread_diff_label(const struct thread_diff *thread)
{
    return thread->normal ? thread->normal->label : thread->faulty->label;
}

static inline bool thread_diff_differs(const struct thread_diff *thread)
{
    return thread->diff.changed || thread->hang_differs;
}

/* The first run of `summary` is the normal one, the last the faulty one. It must outlive the result. Fails
 * with -ENOMEM. Release what a success returned. */
int compare_runs(const struct loop_summary *summary, struct run_comparison *ret_comparison);
void run_comparison_release(struct run_comparison *comparison);

/* Brings the suspects into the order of their scores. */
void run_comparison_sort(struct run_comparison *comparison);

/* The share of entries of the two threads that differ, of those that could be compared: 0 (or nothing to
 * compare) to 1. */
double diff_nlr_share(const struct diff_nlr *diff);

/* The run that is compared with, and the one that is. */
static inline const struct run_loops *summary_run(const struct loop_summary *summary, bool faulty)
{
    return &summary->runs[faulty ? summary->run_count - 1 : 0];
}

/* The function that a sequence ends in: SYMBOL_DROPPED when it is empty or ends in lost events. */
uint32_t last_symbol(const struct loop_table *table, const struct nlr_sequence *sequence);

/* What is different about a matched thread, as the end of a sentence: "L1 ran 7 times instead of 16, then L0
 * ran 9 times". In memory from malloc; NULL: none left. */
char *thread_diff_words(const struct loop_summary *summary, const struct thread_diff *thread);

#endif
