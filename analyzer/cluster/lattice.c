/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Adding an object.
 *
 * The intents of a lattice are all intersections of its objects' sets. A new object with the set S adds S and
 * the intersections of S with intents. In Godin's words, such an intersection I that is not an intent yet
 * makes a new concept, whose generator is the highest concept with all of I; the new concept goes right above
 * it. Godin looks at all concepts to find the generators. Here the generator of S is found by climbing from
 * the bottom, and what must be above the new concept by intersecting S with the covers above its generator,
 * each such intersection being added in the same way first, from that cover on (as in AddIntent: van der
 * Merwe, Obiedkov and Kourie, ICFCA 2004): only the part of the lattice that S has something to do with is
 * walked through. What is left to do is kept in a stack of our own, since lattices can be as high as there
 * are objects.
 *
 * Two things spare most of the work. An intersection within one that is known to be above the new concept
 * needs no more attention: it is an intent already, since adding the larger one has added it. And an
 * intersection that is an intent is found by its hash.
 *
 * The intent of the bottom is all attributes. As long as no object has them all it grows with new objects.
 */
#include "analyzer/cluster/lattice.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"

void lattice_release(struct lattice *lattice)
{
    for (size_t i = 0; i < lattice->count; i++) {
        id_set_release(&lattice->concepts[i].intent);
        free(lattice->concepts[i].upper);
        free(lattice->concepts[i].lower);
    }
    free(lattice->concepts);
    free(lattice->concept_of);
    hash_index_release(&lattice->by_intent);
    id_set_release(&lattice->room);
    *lattice = (struct lattice){0};
}

/* ------------------------------------------------------------------------------------------ by intent */

/* The concept with this intent, in `*ret_concept`; the bottom is not among them. */
static bool find_concept(const struct lattice *lattice, const struct id_set *intent, uint32_t *ret_concept)
{
    struct hash_walk walk = hash_index_walk(&lattice->by_intent, id_set_hash(intent));

    while (hash_walk_next(&walk, ret_concept))
        if (id_set_equal(&lattice->concepts[*ret_concept].intent, intent))
            return true;
    return false;
}

/* There is room for it, see new_concept(). */
static void index_concept(struct lattice *lattice, uint32_t concept)
{
    hash_index_add(&lattice->by_intent, id_set_hash(&lattice->concepts[concept].intent), concept);
}

/* ------------------------------------------------------------------------------------------ concepts */

/* A concept without covers, not in the index yet, for which there is room there. Takes the intent over when
 * it succeeds. */
static int new_concept(struct lattice *lattice, struct id_set *intent, uint32_t *ret_concept)
{
    if (lattice->count >= lattice->limit || lattice->count >= UINT32_MAX - 1)
        return -E2BIG;
    if (hash_index_reserve(&lattice->by_intent, lattice->count + 1) ||
        array_reserve(&lattice->concepts, &lattice->capacity, lattice->count + 1))
        return -ENOMEM;
    lattice->concepts[lattice->count] =
        (struct lattice_concept){.intent = *intent, .intent_size = id_set_count(intent)};
    *intent = (struct id_set){0};
    *ret_concept = (uint32_t)lattice->count++;
    return 0;
}

static int link_concepts(struct lattice *lattice, uint32_t upper, uint32_t lower)
{
    struct lattice_concept *above = &lattice->concepts[upper], *below = &lattice->concepts[lower];

    if (array_reserve(&above->lower, &above->lower_capacity, above->lower_count + 1) ||
        array_reserve(&below->upper, &below->upper_capacity, below->upper_count + 1))
        return -ENOMEM;
    above->lower[above->lower_count++] = lower;
    below->upper[below->upper_count++] = upper;
    return 0;
}

static void remove_id(uint32_t *ids, size_t *count, uint32_t id)
{
    for (size_t i = 0; i < *count; i++)
        if (ids[i] == id) {
            ids[i] = ids[--*count];
            return;
        }
}

/* Does nothing when there is no such link. */
static void unlink_concepts(struct lattice *lattice, uint32_t upper, uint32_t lower)
{
    struct lattice_concept *above = &lattice->concepts[upper], *below = &lattice->concepts[lower];

    remove_id(below->upper, &below->upper_count, upper);
    remove_id(above->lower, &above->lower_count, lower);
}

/* ------------------------------------------------------------------------------------------ adding an intent
 */

/* A concept that will be right above a new one. */
struct cover {
    uint32_t concept;
    struct id_set rest; /* of the new concept's intent, what this one's does not have */
};

/* An intent that is being added. */
struct addition {
    struct id_set intent;
    uint32_t generator;
    size_t next;          /* of the covers above the generator, the first that has not been looked at */
    struct cover *covers; /* as far as they are known; none within another */
    size_t cover_count, cover_capacity;
};

struct additions {
    struct addition *items; /* each waits for the one behind it */
    size_t count, capacity;
};

static void addition_release(struct addition *addition)
{
    for (size_t i = 0; i < addition->cover_count; i++)
        id_set_release(&addition->covers[i].rest);
    id_set_release(&addition->intent);
    free(addition->covers);
}

static void additions_release(struct additions *additions)
{
    for (size_t i = 0; i < additions->count; i++)
        addition_release(&additions->items[i]);
    free(additions->items);
}

/* The highest concept with all of `intent`, from one that has it. */
static uint32_t climb(const struct lattice *lattice, uint32_t concept, const struct id_set *intent)
{
    for (size_t i = 0; i < lattice->concepts[concept].upper_count;) {
        uint32_t upper = lattice->concepts[concept].upper[i++];

        if (id_set_within(intent, &lattice->concepts[upper].intent)) {
            concept = upper;
            i = 0;
        }
    }
    return concept;
}

/* Begins to add a copy of `intent`, which is no concept's; `below` has all of it. */
static int begin_addition(struct additions *additions, const struct lattice *lattice,
                          const struct id_set *intent, uint32_t below)
{
    struct addition *addition;
    int r;

    if (array_reserve(&additions->items, &additions->capacity, additions->count + 1))
        return -ENOMEM;
    addition = &additions->items[additions->count];
    *addition = (struct addition){.generator = climb(lattice, below, intent)};
    r = id_set_copy(intent, &addition->intent);
    additions->count += r == 0;
    return r;
}

/* Whether what the new concept shares with `intent` is within a known cover. That one comes to the front: it
 * is likely to be asked for again. */
static bool is_covered(struct addition *addition, const struct id_set *intent)
{
    struct cover *covers = addition->covers;

    for (size_t i = 0; i < addition->cover_count; i++)
        if (id_set_disjoint(&covers[i].rest, intent)) {
            struct cover found = covers[i];

            covers[i] = covers[0];
            covers[0] = found;
            return true;
        }
    return false;
}

/* Adds a cover that is within none of the known ones, in place of those within it. */
static int add_cover(const struct lattice *lattice, struct addition *addition, uint32_t concept)
{
    const struct id_set *intent = &lattice->concepts[concept].intent;
    struct cover cover = {.concept = concept};
    size_t kept = 0;

    for (size_t i = 0; i < addition->cover_count; i++) {
        if (id_set_within(&lattice->concepts[addition->covers[i].concept].intent, intent))
            id_set_release(&addition->covers[i].rest);
        else
            addition->covers[kept++] = addition->covers[i];
    }
    addition->cover_count = kept;
    if (array_reserve(&addition->covers, &addition->cover_capacity, kept + 1) ||
        id_set_copy(&addition->intent, &cover.rest))
        return -ENOMEM;
    id_set_subtract(&cover.rest, intent);
    addition->covers[addition->cover_count++] = cover;
    return 0;
}

/* Looks at the next cover above the generator: what it shares with the intent is above the new concept. */
static int look_above(struct lattice *lattice, struct additions *additions)
{
    struct addition *addition = &additions->items[additions->count - 1];
    uint32_t upper = lattice->concepts[addition->generator].upper[addition->next++], known;
    struct id_set *shared = &lattice->room;

    if (is_covered(addition, &lattice->concepts[upper].intent))
        return 0;
    if (array_reserve(&shared->words, &lattice->room_capacity, addition->intent.word_count + 1))
        return -ENOMEM;
    id_set_intersect(&addition->intent, &lattice->concepts[upper].intent, shared);
    if (find_concept(lattice, shared, &known))
        return add_cover(lattice, addition, known);
    return begin_addition(additions, lattice, shared, upper);
}

/* All that will be above is known: makes the concept, between its covers and its generator. */
static int end_addition(struct lattice *lattice, struct addition *addition, uint32_t *ret_concept)
{
    uint32_t concept;
    int r = new_concept(lattice, &addition->intent, &concept);

    if (r < 0)
        return r;
    index_concept(lattice, concept);
    for (size_t i = 0; i < addition->cover_count && r == 0; i++) {
        unlink_concepts(lattice, addition->covers[i].concept, addition->generator);
        r = link_concepts(lattice, addition->covers[i].concept, concept);
    }
    if (r < 0)
        return r;
    *ret_concept = concept;
    return link_concepts(lattice, concept, addition->generator);
}

/* Adds an intent within the bottom's that is no concept's, and all its intersections with others. */
static int add_intent(struct lattice *lattice, const struct id_set *intent, uint32_t *ret_concept)
{
    CLEANUP(additions_release) struct additions additions = {0};
    int r = begin_addition(&additions, lattice, intent, lattice->bottom);

    while (r == 0 && additions.count) {
        struct addition *addition = &additions.items[additions.count - 1];

        if (addition->next < lattice->concepts[addition->generator].upper_count) {
            r = look_above(lattice, &additions);
            continue;
        }
        r = end_addition(lattice, addition, ret_concept);
        addition_release(addition);
        if (--additions.count && r == 0)
            r = add_cover(lattice, addition - 1, *ret_concept);
    }
    return r;
}

/* ------------------------------------------------------------------------------------------ the bottom */

/* Whether an object has all attributes. */
static bool bottom_has_objects(const struct lattice *lattice)
{
    for (size_t i = lattice->object_count; i-- > 0;)
        if (lattice->concept_of[i] == lattice->bottom)
            return true;
    return false;
}

/* Makes the bottom's intent one that has all of `attributes`. */
static int lower_bottom(struct lattice *lattice, const struct id_set *attributes)
{
    CLEANUP(id_set_release) struct id_set all = {0};
    struct lattice_concept *bottom = &lattice->concepts[lattice->bottom];
    uint32_t old = lattice->bottom;
    int r;

    all.words = calloc(bottom->intent.word_count + attributes->word_count + 1, sizeof(*all.words));
    if (!all.words)
        return -ENOMEM;
    id_set_unite(&bottom->intent, attributes, &all);
    if (!bottom_has_objects(lattice)) {
        id_set_release(&bottom->intent);
        bottom->intent = all;
        bottom->intent_size = id_set_count(&all);
        all = (struct id_set){0};
        return 0;
    }
    r = new_concept(lattice, &all, &lattice->bottom);
    if (r < 0)
        return r;
    index_concept(lattice, old);
    return link_concepts(lattice, old, lattice->bottom);
}

/* The concept of an object with these attributes, made where it is new. */
static int concept_for(struct lattice *lattice, struct id_set *attributes, uint32_t *ret_concept)
{
    int r = 0;

    if (!lattice->count) {
        r = new_concept(lattice, attributes, ret_concept);
        lattice->bottom = 0;
        return r;
    }
    if (find_concept(lattice, attributes, ret_concept))
        return 0;
    if (!id_set_within(attributes, &lattice->concepts[lattice->bottom].intent))
        r = lower_bottom(lattice, attributes);
    if (r < 0)
        return r;
    *ret_concept = lattice->bottom;
    if (id_set_equal(attributes, &lattice->concepts[lattice->bottom].intent))
        return 0;
    return add_intent(lattice, attributes, ret_concept);
}

/* Adds an object. After an error the lattice can only be released. */
static int add_object(struct lattice *lattice, const struct attribute_set *attributes)
{
    CLEANUP(id_set_release) struct id_set set = {0};
    uint32_t concept = 0;
    int r = id_set_of(attributes->ids, attributes->count, &set);

    if (r < 0)
        return r;
    r = concept_for(lattice, &set, &concept);
    if (r < 0)
        return r;
    if (array_reserve(&lattice->concept_of, &lattice->object_capacity, lattice->object_count + 1))
        return -ENOMEM;
    lattice->concept_of[lattice->object_count++] = concept;
    return 0;
}

int lattice_of_sets(const struct attribute_set *sets, size_t count, size_t limit, struct lattice *ret_lattice)
{
    struct lattice lattice = {.limit = limit};

    for (size_t i = 0; i < count; i++) {
        int r = add_object(&lattice, &sets[i]);

        if (r < 0) {
            lattice_release(&lattice);
            return r;
        }
    }
    *ret_lattice = lattice;
    return 0;
}
