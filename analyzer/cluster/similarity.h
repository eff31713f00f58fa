/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The Jaccard similarity matrix (JSM) of objects with attributes: |Ai & Aj| / |Ai | Aj|, and 1 when both sets
 * are empty. DiffTrace (CLUSTER'19), section 3.3.2.
 *
 * Two ways to it, with equal results to the last bit: from the sets, and from their concept lattice. Large
 * matrices are computed by several threads. Functions return 0 or a negative errno; where nothing else is
 * said, -ENOMEM is the only one.
 */
#ifndef TRACECTL_ANALYZER_CLUSTER_SIMILARITY_H
#define TRACECTL_ANALYZER_CLUSTER_SIMILARITY_H

#include "analyzer/cluster/attributes.h"

struct lattice;

/* The triangle above the diagonal, row by row, as SciPy's pdist has it: count * (count - 1) / 2 values. Zeros
 * are the similarity of no objects. */
struct similarity {
    size_t count; /* objects */
    double *values;
};

void similarity_release(struct similarity *similarity);

/* Values in the triangle of `count` objects. */
static inline size_t similarity_size(size_t count)
{
    return count ? count * (count - 1) / 2 : 0;
}

/* Where the value of objects i < j is. */
static inline size_t similarity_index(size_t count, size_t i, size_t j)
{
    return i * (2 * count - i - 1) / 2 + (j - i - 1);
}

/* 1 on the diagonal. Not for differences, whose diagonal is 0. */
static inline double similarity_at(const struct similarity *similarity, size_t i, size_t j)
{
    if (i == j)
        return 1;
    return similarity->values[i < j ? similarity_index(similarity->count, i, j)
                                    : similarity_index(similarity->count, j, i)];
}

/* Directly. Time grows with the square of the number of distinct sets; memory is that of the result and a bit
 * for each distinct set and each attribute that many of them have. */
int similarity_of_sets(const struct attribute_set *sets, size_t count, struct similarity *ret_similarity);

#endif
