/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What one combination of parameters says of every object: a part of ranking.c. */
#ifndef TRACECTL_ANALYZER_RANKING_RANKING_VOTES_H
#define TRACECTL_ANALYZER_RANKING_RANKING_VOTES_H

#include <stdbool.h>

#include "analyzer/cluster/attributes.h"
#include "analyzer/cluster/similarity.h"

/* One run as one combination sees it: the objects' attributes, and how much they resemble each other. */
struct run_context {
    struct attribute_set *sets;   /* by object, of the combination's attributes */
    struct attribute_set *counts; /* the same with frequency ACTUAL; may be the same array */
    struct similarity similarity;
};

/* JSM_D of a run against normal ones: how far its similarities lie outside the range of theirs; with one
 * normal run that is |JSM_faulty - JSM_normal|. `spare` (or -1) is a normal run that does not count. */
int votes_difference(const struct run_context *normals, size_t count, long spare,
                     const struct run_context *subject, struct similarity *ret_difference);

/* Into `changes`, for each object the mean of its row of JSM_D: how much its resemblance to the others
 * changed, 0 to 1. */
void votes_relations(const struct similarity *difference, double *changes);

/* How much an object's own calls changed, 0 to 1: over the entries (or pairs) that its sets in the subject
 * and in the normal runs have, the mean of what the change of each one's frequency says: its relative size,
 * 1 - min / max, times its evidence, 1 - exp(-(sqrt(max) - sqrt(min))^2 / 2), which is low where chance makes
 * such changes (the roots of Poisson counts have the variance 1/4): once instead of never is less than a
 * hundred times instead of never. A frequency within the range of the normal runs' is no change, one outside
 * is compared with the nearer end. The sets are of frequency ACTUAL. Fails with -ENOMEM. */
int votes_own_change(const struct attribute_table *table, const struct run_context *normals, size_t count,
                     long spare, const struct run_context *subject, size_t object, double *ret_change);

/* An object's vote before what stands out is known: half its own change, and half the geometric mean of that
 * and of the change of its relations, for these change, too, when it is the others that changed. */
double votes_of_changes(double relations, double own);

/* Turns changes into votes: each is lowered by the share of its peers that changed as much, for what all of a
 * kind have in common singles nobody out. `peers` says how much objects resemble each other. Of fewer than
 * three objects nobody can stand out, and the changes stay as they are. Returns the confidence of the
 * combination: 1 when one object alone stands out, near 0 when all do alike or nobody does. Fails with
 * -ENOMEM. */
int votes_stand_out(double *changes, size_t count, const struct similarity *peers, double *ret_confidence);

#endif
