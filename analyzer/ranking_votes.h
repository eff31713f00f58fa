/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What one combination of parameters says of every object: a part of ranking.c. */
#ifndef TRACECTL_ANALYZER_RANKING_VOTES_H
#define TRACECTL_ANALYZER_RANKING_VOTES_H

#include <stdbool.h>

#include "analyzer/attributes.h"
#include "analyzer/similarity.h"

/* One run as one combination sees it: the objects' attributes, and how much they resemble each other. */
struct run_context {
    struct attribute_set *sets; /* by object */
    struct similarity similarity;
};

/* JSM_D of a run against normal ones: how far its similarities lie outside the range of theirs; with one
 * normal run that is |JSM_faulty - JSM_normal|. `spare` (or -1) is a normal run that does not count. */
int votes_difference(const struct run_context *normals, size_t count, long spare,
                     const struct run_context *subject, struct similarity *ret_difference);

/* Into `changes`, for each object the mean of its row of JSM_D: how much its resemblance to the others
 * changed, 0 to 1. */
void votes_relations(const struct similarity *difference, double *changes);

/* How much an object's own attributes changed, 0 to 1: the smallest Jaccard distance between its sets in the
 * subject and in a normal run; with actual frequencies the weighted one, 1 - sum of minima / sum of maxima,
 * so that a loop that ran 15 times is near one that ran 16 times. Fails with -ENOMEM. */
int votes_own_change(const struct attribute_table *table, const struct run_context *normals, size_t count,
                     long spare, const struct run_context *subject, size_t object, bool weighted,
                     double *ret_change);

/* Turns changes into votes: what is above the median, for what all have in common singles nobody out.
 * Returns the confidence of the combination: 1 when one object alone stands out, near 0 when all do alike or
 * nobody does. Fails with -ENOMEM. */
int votes_stand_out(double *changes, size_t count, double *ret_confidence);

#endif
