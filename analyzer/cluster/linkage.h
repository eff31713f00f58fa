/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Agglomerative hierarchical clustering: who is merged with whom, at which distance, until one cluster is
 * left.
 *
 * The result is SciPy's linkage matrix, row by row, also where distances are equal: the same algorithms take
 * the same one of several nearest clusters. They are those of D. Müllner, "Modern hierarchical, agglomerative
 * clustering algorithms" (arXiv:1109.2378): Prim's minimum spanning tree for single linkage, chains of
 * nearest neighbours (F. Murtagh) for complete, average, weighted and ward, and Müllner's generic algorithm
 * for centroid and median, where a cluster can be nearer than the two that it was made of.
 */
#ifndef TRACECTL_ANALYZER_CLUSTER_LINKAGE_H
#define TRACECTL_ANALYZER_CLUSTER_LINKAGE_H

#include <stddef.h>
#include <stdint.h>

enum linkage_method {
    LINKAGE_SINGLE,
    LINKAGE_COMPLETE,
    LINKAGE_AVERAGE,
    LINKAGE_WEIGHTED,
    LINKAGE_CENTROID,
    LINKAGE_MEDIAN,
    LINKAGE_WARD,
    LINKAGE_METHODS, /* how many there are */
};

/* Distances are squared, and the squares weighted and added up: they must not overflow. */
#define LINKAGE_MAX_DISTANCE 1e140
#define LINKAGE_MAX_COUNT ((size_t)1 << 30)

/* A row of the matrix. The objects are the clusters 0 to count - 1; row i makes the cluster count + i. */
struct linkage_merge {
    uint32_t a, b;   /* the two clusters, a < b */
    double distance; /* between them */
    uint32_t size;   /* objects in the new cluster */
};

/* "single", "complete" and so on, as SciPy calls them. linkage_parse fails with -EINVAL. */
const char *linkage_name(enum linkage_method method);
int linkage_parse(const char *name, enum linkage_method *ret_method);

/* Clusters `count` objects. `distances` are those of all pairs (0,1) (0,2) ... (1,2) ..., count * (count - 1)
 * / 2 of them; they are overwritten. Fills `merges`, count - 1 rows; none for fewer than two objects.
 *
 * The rows are sorted by distance, but for centroid and median, whose distances may fall from one row to the
 * next. Centroid, median and ward take the distances for Euclidean ones, as SciPy does, whatever they are.
 *
 * Time O(count^2), though centroid and median can need more on distances made for it; memory O(count) beside
 * the distances. Fails with -EINVAL (a distance is negative, not a number, or above LINKAGE_MAX_DISTANCE),
 * -EOVERFLOW (more than LINKAGE_MAX_COUNT objects) or -ENOMEM. */
int linkage_of(enum linkage_method method, size_t count, double *distances, struct linkage_merge *merges);

/* The clusters that are there after the first count - clusters rows, in the order of the rows; so what is
 * undone are the last merges, also where distances are equal or fall. labels[object] is its cluster, numbered
 * from 0 in order of first appearance. Fails with -EINVAL (`clusters` is not in 1 to count) or -ENOMEM. */
int linkage_cut(const struct linkage_merge *merges, size_t count, size_t clusters, uint32_t *labels);

#endif
