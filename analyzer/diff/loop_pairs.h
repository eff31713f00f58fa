/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which loop of the one run is which of the other. A part of diff_nlr.c.
 *
 * Two bodies are as similar as the calls of one iteration are, inner loops taken once: twice the length of
 * their longest common subsequence, divided by their lengths together.
 */
#ifndef TRACECTL_ANALYZER_DIFF_LOOP_PAIRS_H
#define TRACECTL_ANALYZER_DIFF_LOOP_PAIRS_H

#include "analyzer/diff/diff_nlr.h"

/* Between 0 and 1; of long bodies the first LOOP_PAIRS_CALLS calls count. Fails with -ENOMEM. */
#define LOOP_PAIRS_CALLS 512u
int loop_similarity(const struct loop_table *table, uint32_t a, uint32_t b, double *ret_similarity);

/* Adds to diff->loops the pairs of the changed block, in order: first, as many as possible, loops of one
 * body; between those, loops more similar than one half, so that the sum of similarities is the largest.
 * Fails with -ENOMEM. */
int loop_pairs_add(const struct loop_table *table, const struct nlr_sequence *normal,
                   const struct nlr_sequence *faulty, const struct diff_edit *block, struct diff_nlr *diff);

#endif
