/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The lattice is compared with a batch construction that has nothing in common with it: all intersections of
 * the objects' sets, as bit masks, and the covers by looking at all triples.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#include "analyzer/cluster/lattice.h"
#include "analyzer/cluster/similarity.h"
#include "base/array.h"
#include "tests/unit/analyzer/attribute_sets.h"
#include "tests/unit/analyzer/streams.h"

#define LIMIT 100000u

/* ------------------------------------------------------------------------------------------ the batch */

static uint32_t mask_of(const struct attribute_set *set)
{
    uint32_t mask = 0;

    for (size_t i = 0; i < set->count; i++)
        mask |= (uint32_t)1 << set->ids[i];
    return mask;
}

static int compare_masks(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

    return (left > right) - (left < right);
}

static size_t sort_out(uint32_t *masks, size_t count)
{
    size_t kept = 0;

    qsort(masks, count, sizeof(*masks), compare_masks);
    for (size_t i = 0; i < count; i++)
        if (!kept || masks[kept - 1] != masks[i])
            masks[kept++] = masks[i];
    return kept;
}

/* All intents, ascending as numbers: the union of all sets, and every intersection of sets. */
static size_t batch_intents(const struct attribute_set *sets, size_t count, uint32_t *intents, size_t room)
{
    size_t found = 1;

    intents[0] = 0;
    for (size_t i = 0; i < count; i++)
        intents[0] |= mask_of(&sets[i]);
    for (size_t i = 0; i < count; i++) {
        size_t before = found;

        cr_assert_leq(2 * found, room);
        for (size_t j = 0; j < before; j++)
            intents[found++] = intents[j] & mask_of(&sets[i]);
        found = sort_out(intents, found);
    }
    return found;
}

static bool is_cover(const uint32_t *intents, size_t count, uint32_t upper, uint32_t lower)
{
    if (upper == lower || (upper & lower) != upper)
        return false;
    for (size_t i = 0; i < count; i++)
        if (intents[i] != upper && intents[i] != lower && (upper & intents[i]) == upper &&
            (intents[i] & lower) == intents[i])
            return false;
    return true;
}

/* ------------------------------------------------------------------------------------------ comparing */

static uint32_t intent_mask(const struct lattice *lattice, uint32_t concept)
{
    struct attribute_set intent;
    uint32_t mask;

    cr_assert_eq(lattice_intent(lattice, concept, &intent), 0);
    cr_assert_eq(intent.count, lattice->concepts[concept].intent_size);
    mask = mask_of(&intent);
    attribute_set_release(&intent);
    return mask;
}

static bool has_id(const uint32_t *ids, size_t count, uint32_t id)
{
    for (size_t i = 0; i < count; i++)
        if (ids[i] == id)
            return true;
    return false;
}

static void check_covers(const struct lattice *lattice, const uint32_t *masks, const uint32_t *intents)
{
    for (uint32_t a = 0; a < lattice->count; a++)
        for (uint32_t b = 0; b < lattice->count; b++) {
            const struct lattice_concept *upper = &lattice->concepts[a], *lower = &lattice->concepts[b];
            bool cover = is_cover(intents, lattice->count, masks[a], masks[b]);

            cr_assert_eq(has_id(upper->lower, upper->lower_count, b), cover);
            cr_assert_eq(has_id(lower->upper, lower->upper_count, a), cover);
        }
}

/* The extents are the objects that have the whole intent, the own ones those that have no more than it. */
static void check_extents(const struct lattice *lattice, const uint32_t *masks,
                          const struct attribute_set *sets, size_t count)
{
    struct lattice_objects objects;

    cr_assert_eq(lattice->object_count, count);
    cr_assert_eq(lattice_objects_of(lattice, &objects), 0);
    for (uint32_t concept = 0; concept < lattice->count; concept ++) {
        size_t own = objects.first[concept], in_extent = 0;
        uint32_t *extent;

        cr_assert_eq(lattice_extent(lattice, &objects, concept, &extent), 0);
        for (uint32_t object = 0; object < count; object++) {
            uint32_t mask = mask_of(&sets[object]);

            if (mask == masks[concept])
                cr_assert_eq(objects.objects[own++], object);
            if ((mask & masks[concept]) == masks[concept])
                cr_assert_eq(extent[in_extent++], object);
        }
        cr_assert_eq(own, objects.first[concept + 1]);
        cr_assert_eq(in_extent, objects.extent_size[concept]);
        free(extent);
    }
    lattice_objects_release(&objects);
}

/* Reduced labelling: an attribute belongs to the one concept whose intent has it and is a part of all others
 * that do. */
static void check_own_attributes(const struct lattice *lattice, const uint32_t *masks)
{
    uint32_t labelled = 0, all = masks[lattice->bottom];

    for (uint32_t concept = 0; concept < lattice->count; concept ++) {
        struct attribute_set own;

        cr_assert_eq(lattice_own_attributes(lattice, concept, &own), 0);
        for (size_t i = 0; i < own.count; i++) {
            cr_assert(!(labelled >> own.ids[i] & 1));
            labelled |= (uint32_t)1 << own.ids[i];
            for (uint32_t other = 0; other < lattice->count; other++)
                cr_assert(!(masks[other] >> own.ids[i] & 1) ||
                          (masks[concept] & masks[other]) == masks[concept]);
        }
        attribute_set_release(&own);
    }
    cr_assert_eq(labelled, all);
}

/* Descending in the order, no concept before one above it, and intents as of the batch. */
static void check_order(const struct lattice *lattice, const uint32_t *masks, const uint32_t *intents)
{
    uint32_t *order = calloc(lattice->count, sizeof(*order)), *seen = calloc(lattice->count, sizeof(*seen));

    lattice_order(lattice, order);
    for (size_t i = 0; i < lattice->count; i++) {
        seen[i] = masks[order[i]];
        for (size_t j = 0; j < i; j++)
            cr_assert((seen[j] & seen[i]) != seen[i], "a concept is behind one below it, or occurs twice");
    }
    cr_assert_eq(seen[lattice->count - 1], masks[lattice->bottom]);
    cr_assert_eq(sort_out(seen, lattice->count), lattice->count);
    cr_assert_arr_eq(seen, intents, lattice->count * sizeof(*seen));
    free(order);
    free(seen);
}

static void check_sets(const struct attribute_set *sets, size_t count)
{
    enum { ROOM = 20000 };
    static uint32_t intents[ROOM];
    size_t expected = batch_intents(sets, count, intents, ROOM);
    struct lattice lattice;
    uint32_t *masks;

    cr_assert_eq(lattice_of_sets(sets, count, LIMIT, &lattice), 0);
    cr_assert_eq(lattice.count, expected);
    masks = calloc(lattice.count, sizeof(*masks));
    for (uint32_t concept = 0; concept < lattice.count; concept ++)
        masks[concept] = intent_mask(&lattice, concept);
    check_order(&lattice, masks, intents);
    check_extents(&lattice, masks, sets, count);
    check_own_attributes(&lattice, masks);
    if (lattice.count <= 60)
        check_covers(&lattice, masks, intents);
    free(masks);
    lattice_release(&lattice);
}

static void shuffle(uint64_t *seed, struct attribute_set *sets, size_t count)
{
    for (size_t i = count; i > 1; i--) {
        size_t other = random_below(seed, (uint32_t)i);
        struct attribute_set set = sets[other];

        sets[other] = sets[i - 1];
        sets[i - 1] = set;
    }
}

/* The order of the concepts as intents, and their covers as places in that order, as one hash. */
static uint64_t fingerprint(const struct attribute_set *sets, size_t count)
{
    struct lattice lattice;
    uint32_t *order, *place;
    uint64_t hash = 0;

    cr_assert_eq(lattice_of_sets(sets, count, LIMIT, &lattice), 0);
    order = calloc(lattice.count, sizeof(*order));
    place = calloc(lattice.count, sizeof(*place));
    lattice_order(&lattice, order);
    for (size_t i = 0; i < lattice.count; i++)
        place[order[i]] = (uint32_t)i;
    for (size_t i = 0; i < lattice.count; i++) {
        const struct lattice_concept *concept = &lattice.concepts[order[i]];
        uint64_t covers = 0;

        for (size_t j = 0; j < concept->upper_count; j++)
            covers += (place[concept->upper[j]] + 1) * 0x9e3779b97f4a7c15u;
        hash = (hash + id_set_hash(&concept->intent)) * 31 + covers;
    }
    free(order);
    free(place);
    lattice_release(&lattice);
    return hash;
}

/* ------------------------------------------------------------------------------------------ tests */

Test(lattice, random_contexts)
{
    uint64_t seed = 1;

    for (uint32_t round = 0; round < 3000; round++) {
        size_t count = 1 + random_below(&seed, 12);
        uint32_t attributes = random_below(&seed, 12), percent = random_below(&seed, 101);
        struct attribute_set *sets = random_sets(&seed, count, attributes, percent);

        check_sets(sets, count);
        sets_free(sets, count);
    }
}

Test(lattice, larger_contexts_in_any_order)
{
    uint64_t seed = 2;

    for (uint32_t round = 0; round < 100; round++) {
        size_t count = 20 + random_below(&seed, 40);
        struct attribute_set *sets = random_sets(&seed, count, 10 + random_below(&seed, 20), 10 + round % 30);
        uint64_t expected = fingerprint(sets, count);

        check_sets(sets, count);
        for (uint32_t i = 0; i < 5; i++) {
            shuffle(&seed, sets, count);
            cr_assert_eq(fingerprint(sets, count), expected);
        }
        sets_free(sets, count);
    }
}

/* Table 3.4 and figure 3.3 of the dissertation: the odd/even sort of four ranks. */
Test(lattice, odd_even_sort)
{
    uint32_t even[] = {0, 1, 2, 3, 5}, odd[] = {0, 1, 2, 4, 5};
    struct attribute_set sets[] = {{even, 5}, {odd, 5}, {even, 5}, {odd, 5}}, own;
    static const size_t extents[] = {4, 2, 2, 0}, labels[] = {4, 1, 1, 0};
    struct lattice_objects objects;
    struct lattice lattice;
    uint32_t order[4];

    check_sets(sets, 4);
    cr_assert_eq(lattice_of_sets(sets, 4, LIMIT, &lattice), 0);
    cr_assert_eq(lattice.count, 4);
    cr_assert_eq(lattice_objects_of(&lattice, &objects), 0);
    lattice_order(&lattice, order);
    for (size_t i = 0; i < 4; i++) {
        cr_assert_eq(objects.extent_size[order[i]], extents[i]);
        cr_assert_eq(lattice_own_attributes(&lattice, order[i], &own), 0);
        cr_assert_eq(own.count, labels[i]);
        attribute_set_release(&own);
    }
    lattice_objects_release(&objects);
    lattice_release(&lattice);
}

Test(lattice, no_objects_and_no_attributes)
{
    struct attribute_set nothing[] = {{NULL, 0}, {NULL, 0}};
    struct lattice lattice;

    cr_assert_eq(lattice_of_sets(nothing, 0, LIMIT, &lattice), 0);
    cr_assert_eq(lattice.count, 0);
    lattice_release(&lattice);
    check_sets(nothing, 2);
}

/* Sets within each other: as many levels as objects. */
Test(lattice, high_lattice)
{
    enum { COUNT = 3000 };
    struct attribute_set *sets = calloc(COUNT, sizeof(*sets));
    uint32_t *ids = calloc(COUNT, sizeof(*ids));
    struct lattice lattice;

    for (uint32_t i = 0; i < COUNT; i++) {
        ids[i] = i;
        sets[i] = (struct attribute_set){ids, (i * 7919u) % COUNT};
    }
    cr_assert_eq(lattice_of_sets(sets, COUNT, LIMIT, &lattice), 0);
    cr_assert_eq(lattice.count, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        cr_assert_leq(lattice.concepts[i].upper_count, 1);
    lattice_release(&lattice);
    free(sets);
    free(ids);
}

/* Each object lacks another attribute: two to the power of the objects. */
Test(lattice, limit)
{
    enum { COUNT = 40 };
    struct attribute_set sets[COUNT];
    uint32_t ids[COUNT][COUNT];
    struct lattice lattice;

    for (uint32_t i = 0; i < COUNT; i++) {
        sets[i] = (struct attribute_set){ids[i], 0};
        for (uint32_t id = 0; id < COUNT; id++)
            if (id != i)
                ids[i][sets[i].count++] = id;
    }
    cr_assert_eq(lattice_of_sets(sets, COUNT, 5000, &lattice), -E2BIG);
    cr_assert_eq(lattice_of_sets(sets, 10, 1024, &lattice), 0);
    cr_assert_eq(lattice.count, 1024);
    lattice_release(&lattice);
    cr_assert_eq(lattice_of_sets(sets, 10, 1023, &lattice), -E2BIG);
}
