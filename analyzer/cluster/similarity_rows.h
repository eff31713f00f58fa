/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A similarity matrix from counts of shared attributes. Objects with equal sets are one class: a row of
 * counts is computed for each class, not for each object. A part of similarity.c.
 */
#ifndef TRACECTL_ANALYZER_CLUSTER_SIMILARITY_ROWS_H
#define TRACECTL_ANALYZER_CLUSTER_SIMILARITY_ROWS_H

#include "analyzer/cluster/similarity.h"

struct similarity_rows {
    size_t objects, classes;
    const uint32_t *class_of; /* by object, below `classes` */
    const size_t *sizes;      /* by class: the attributes of its objects */

    /* Fills `shared` (by class) with the number of attributes that `class` shares with each class; what it
     * says of `class` itself does not matter. `room` are `room_size` bytes, zeros at first, then as the last
     * call has left them. Called by several threads at once, each with a room and a `shared` of its own. */
    void (*share)(const void *context, uint32_t class, void *room, uint32_t *shared);
    const void *context;
    size_t room_size;
};

/* Fails with -ENOMEM. */
int similarity_from_rows(const struct similarity_rows *rows, struct similarity *ret_similarity);

#endif
