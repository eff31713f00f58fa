/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A comparison in plain words: who differs, where it begins, what kind of difference it is, how sure that is.
 * Computed from a comparison and what is known of its functions, and nothing else.
 */
#ifndef TRACECTL_ANALYZER_DIFF_VERDICT_H
#define TRACECTL_ANALYZER_DIFF_VERDICT_H

#include <stdio.h>

#include "analyzer/diff/divergence.h"
#include "analyzer/diff/renames.h"

/* Threads to which the same happened: one kind of difference, between the same calls. */
struct verdict_group {
    struct divergence divergence; /* of the first one; other members may part at another iteration */
    size_t *threads;              /* indices in the comparison, the most changed first */
    size_t count, capacity;
};

/* What limits the answer, of both runs together. */
struct verdict_doubts {
    size_t unknown_threads; /* could not be compared in full */
    size_t unfinished;      /* runs */
    uint64_t lost_events;   /* known to be missing */
    bool lost_unknown;      /* and more, nobody knows how many */
    size_t blind_functions; /* left out of both runs */
    size_t unknown_ends;    /* threads that differ, of which it is not known whether a last call returned */
    bool one_normal;        /* only one normal run: what varies anyway counts as a difference, too */
};

struct diff_verdict {
    const struct loop_summary *loops;
    const struct run_comparison *comparison;
    const struct function_facts *facts;
    struct verdict_group *groups; /* of the suspects, the one with the most changed thread first */
    size_t group_count;
    struct renames renames;
    uint32_t *only_normal, *only_faulty; /* symbols called in one run only, renamed ones left out */
    size_t only_normal_count, only_faulty_count;
    struct call_count *calls; /* of the most changed thread: functions called more or less often, renamed
                                 ones as one, as call_tally_sort has them */
    size_t call_count;
    struct verdict_doubts doubts;
};

/* All arguments must outlive the result. Fails with -ENOMEM. Release what a success returned. */
int diff_verdict_make(const struct loop_summary *loops, const struct run_comparison *comparison,
                      const struct function_facts *facts, struct diff_verdict *ret_verdict);
void diff_verdict_release(struct diff_verdict *verdict);

/* As text of at most about twenty lines, each ended by a newline. The names are those of the runs. In memory
 * from malloc; NULL: none left. */
char *diff_verdict_text(const struct diff_verdict *verdict, const char *normal_name, const char *faulty_name);

#endif
