/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The concept lattice of objects with attributes, built object by object.
 *
 * A concept is a set of objects, its extent, with a set of attributes, its intent, such that the intent is
 * what all of the extent have, and the extent is all that have the intent. A concept is above another when
 * its intent is a part of the other's. Godin, Missaoui and Alaoui, "Incremental concept formation algorithms
 * based on Galois lattices", Computational Intelligence 11(2), 1995; lattice.c says how the search for what
 * changes is shortened. Which concepts there are does not depend on the order of the objects; their ids do,
 * and lattice_order gives an order that does not.
 *
 * Objects are numbered in the order in which they are added. Functions return 0 or a negative errno; where
 * nothing else is said, -ENOMEM is the only one.
 */
#ifndef TRACECTL_ANALYZER_CLUSTER_LATTICE_H
#define TRACECTL_ANALYZER_CLUSTER_LATTICE_H

#include "analyzer/cluster/attributes.h"
#include "analyzer/cluster/id_set.h"
#include "base/hash_index.h"

#define LATTICE_DEFAULT_LIMIT 100000u

struct lattice_concept {
    struct id_set intent;
    size_t intent_size;
    uint32_t *upper, *lower; /* covers: the concepts next above, next below */
    size_t upper_count, upper_capacity, lower_count, lower_capacity;
};

/* Read freely, change through the functions below. Zeros with a limit are an empty lattice. */
struct lattice {
    struct lattice_concept *concepts; /* by id */
    size_t count, capacity;
    size_t limit;    /* concepts that are not exceeded */
    uint32_t bottom; /* the lowest concept, when there is one; its extent may be empty */

    uint32_t *concept_of; /* by object: the lowest concept that has it in its extent */
    size_t object_count, object_capacity;

    struct hash_index by_intent; /* all concepts but the bottom */
    struct id_set room;          /* for an intersection */
    size_t room_capacity;
};

void lattice_release(struct lattice *lattice);

/* The lattice of `count` objects; release what a success returned. -E2BIG: it would have more than `limit`
 * concepts; lattices can be as large as two to the power of their objects. */
int lattice_of_sets(const struct attribute_set *sets, size_t count, size_t limit,
                    struct lattice *ret_lattice);

/* All concepts from the top to the bottom, no concept before one above it: by the size of the intent, then by
 * the intent. `order` has room for lattice->count ids. */
void lattice_order(const struct lattice *lattice, uint32_t *order);

/* Reduced labelling: the attributes that no concept above has. Each attribute belongs to one concept. */
int lattice_own_attributes(const struct lattice *lattice, uint32_t concept, struct attribute_set *ret_set);
int lattice_intent(const struct lattice *lattice, uint32_t concept, struct attribute_set *ret_set);

/* The objects of each concept, sorted out. */
struct lattice_objects {
    size_t *first; /* by concept, and one more: in `objects` */
    uint32_t
        *objects; /* those that no concept below has (reduced labelling), concept by concept, ascending */
    size_t *extent_size; /* by concept */
};

int lattice_objects_of(const struct lattice *lattice, struct lattice_objects *ret_objects);
void lattice_objects_release(struct lattice_objects *objects);

/* The extent: extent_size[concept] objects, ascending, to be freed. */
int lattice_extent(const struct lattice *lattice, const struct lattice_objects *objects, uint32_t concept,
                   uint32_t **ret_extent);

#endif
