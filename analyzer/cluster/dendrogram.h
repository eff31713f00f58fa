/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A clustering as it is drawn: its leaves from top to bottom, and between each two neighbours the merge that
 * brings them together. Objects that are 0 apart share a leaf.
 */
#ifndef TRACECTL_ANALYZER_CLUSTER_DENDROGRAM_H
#define TRACECTL_ANALYZER_CLUSTER_DENDROGRAM_H

#include "analyzer/cluster/linkage.h"

#define DENDROGRAM_LEAF UINT32_MAX

/* The merge drawn between leaf i and leaf i + 1 is join i. */
struct dendrogram_join {
    uint32_t upper, lower; /* the joins that it brings together; DENDROGRAM_LEAF: the leaf next to it */
    uint32_t size;         /* objects */
    double distance;       /* between the two */
    double height;         /* to draw it at: the distance, but not below what it joins (centroid, median) */
};

struct dendrogram {
    size_t leaf_count;
    uint32_t *objects;             /* leaf after leaf, in ascending order within each */
    size_t *starts;                /* leaf i has objects[starts[i]] to before objects[starts[i + 1]] */
    struct dendrogram_join *joins; /* leaf_count - 1, or none */
    uint32_t root;                 /* the join of everything; meaningless with fewer than two leaves */
};

/* The part with the lowest object is drawn above the other. Fails with -ENOMEM. Release what a success
 * returned. */
int dendrogram_build(const struct linkage_merge *merges, size_t count, struct dendrogram *ret_dendrogram);
void dendrogram_release(struct dendrogram *dendrogram);

#endif
