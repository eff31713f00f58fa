/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Inside linkage: the clusters that are left, and the distances between them. Each object has a place, and a
 * cluster has that of its last object; merging two gives the lower place up.
 */
#ifndef TRACECTL_ANALYZER_CLUSTER_LINKAGE_SPACE_H
#define TRACECTL_ANALYZER_CLUSTER_LINKAGE_SPACE_H

#include <stddef.h>
#include <stdint.h>

#include "analyzer/cluster/linkage.h"

struct linkage_space {
    size_t count;      /* places: the objects that there were */
    double *distances; /* between places, as linkage_of has them; the caller's */
    uint32_t *sizes;   /* of the cluster in a place; what is in a place given up means nothing */
    uint32_t *left;    /* the places that are not given up, in ascending order */
    size_t left_count;
};

/* -ENOMEM. linkage_space_release takes what a failure left behind. */
int linkage_space_init(struct linkage_space *space, size_t count, double *distances);
void linkage_space_release(struct linkage_space *space);

/* Where the distance from `place` to a higher place begins to be counted: row + higher. */
static inline size_t linkage_space_row(size_t count, size_t place)
{
    return place * (2 * count - place - 3) / 2 - 1; /* wraps for place 0, and back when added to */
}

static inline double *linkage_space_between(const struct linkage_space *space, size_t a, size_t b)
{
    return &space->distances[a < b ? linkage_space_row(space->count, a) + b
                                   : linkage_space_row(space->count, b) + a];
}

/* Where in `left` the first place above `place` is. */
size_t linkage_space_above(const struct linkage_space *space, uint32_t place);

/* Merges the clusters in x and y, x < y, which are `distance` apart, into y, and gives x up. */
void linkage_space_merge(struct linkage_space *space, enum linkage_method method, uint32_t x, uint32_t y,
                         double distance);

/* The algorithms of linkage_of for two objects or more. They fail with -ENOMEM. The rows of the chain
 * algorithm are in the order in which it finds them, with places for clusters and without sizes. */
int linkage_by_chain(enum linkage_method method, struct linkage_space *space, struct linkage_merge *merges);
int linkage_generic(enum linkage_method method, struct linkage_space *space, struct linkage_merge *merges);

#endif
