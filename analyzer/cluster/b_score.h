/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How alike two hierarchical clusterings of the same objects are: E. B. Fowlkes and C. L. Mallows, "A Method
 * for Comparing Two Hierarchical Clusterings", Journal of the American Statistical Association 78 (1983).
 * DiffTrace ranks by it: a low score means that the fault changed which threads resemble which.
 */
#ifndef TRACECTL_ANALYZER_CLUSTER_B_SCORE_H
#define TRACECTL_ANALYZER_CLUSTER_B_SCORE_H

#include "analyzer/cluster/linkage.h"

/* Compares two clusterings of `count` objects, as linkage_of makes them. Both are cut into k clusters as
 * linkage_cut cuts them; B_k is the number of pairs of objects that are together in both, divided by the
 * geometric mean of the numbers of pairs that are together in each: from 0, no pair in common, to 1, the same
 * clusters. Fills b_k[k - 2] for k from 2 to count - 1 (not where b_k is NULL), and *ret_mean with their
 * mean: the score.
 *
 * Fewer than three objects have no such k; the score is 1 then, as nothing can differ.
 *
 * Time O(count log count), memory O(count). Fails with -EOVERFLOW (more than LINKAGE_MAX_COUNT objects) or
 * -ENOMEM. */
int b_score(const struct linkage_merge *a, const struct linkage_merge *b, size_t count, double *b_k,
            double *ret_mean);

#endif
