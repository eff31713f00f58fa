/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reading a lattice: the order of its concepts, their intents and extents, in full and reduced. */
#include <errno.h>
#include <stdlib.h>

#include "analyzer/cluster/lattice.h"
#include "base/cleanup.h"

/* ------------------------------------------------------------------------------------------ order */

/* Of sets of one size the one first that has the lowest id that only one has. */
static int compare_sets(const struct id_set *a, const struct id_set *b)
{
    size_t i = 0;
    uint64_t differ;

    while (i < a->word_count && i < b->word_count && a->words[i].index == b->words[i].index &&
           a->words[i].bits == b->words[i].bits)
        i++;
    if (i == a->word_count || i == b->word_count)
        return (i == a->word_count) - (i == b->word_count);
    if (a->words[i].index != b->words[i].index)
        return a->words[i].index < b->words[i].index ? -1 : 1;
    differ = a->words[i].bits ^ b->words[i].bits;
    return a->words[i].bits & differ & -differ ? -1 : 1;
}

static int compare_concepts(const void *a, const void *b, void *context)
{
    const struct lattice_concept *concepts = context;
    const struct lattice_concept *left = &concepts[*(const uint32_t *)a],
                                 *right = &concepts[*(const uint32_t *)b];

    if (left->intent_size != right->intent_size)
        return left->intent_size < right->intent_size ? -1 : 1;
    return compare_sets(&left->intent, &right->intent);
}

void lattice_order(const struct lattice *lattice, uint32_t *order)
{
    for (size_t i = 0; i < lattice->count; i++)
        order[i] = (uint32_t)i;
    if (lattice->count)
        qsort_r(order, lattice->count, sizeof(*order), compare_concepts, lattice->concepts);
}

/* ------------------------------------------------------------------------------------------ attributes */

static int ids_of(const struct id_set *set, struct attribute_set *ret_set)
{
    size_t count = id_set_count(set);
    uint32_t *ids = calloc(count + 1, sizeof(*ids));

    if (!ids)
        return -ENOMEM;
    id_set_ids(set, ids);
    *ret_set = (struct attribute_set){ids, count};
    return 0;
}

int lattice_intent(const struct lattice *lattice, uint32_t concept, struct attribute_set *ret_set)
{
    return ids_of(&lattice->concepts[concept].intent, ret_set);
}

int lattice_own_attributes(const struct lattice *lattice, uint32_t concept, struct attribute_set *ret_set)
{
    CLEANUP(id_set_release) struct id_set own = {0};
    const struct lattice_concept *labelled = &lattice->concepts[concept];
    int r = id_set_copy(&labelled->intent, &own);

    if (r < 0)
        return r;
    for (size_t i = 0; i < labelled->upper_count; i++)
        id_set_subtract(&own, &lattice->concepts[labelled->upper[i]].intent);
    return ids_of(&own, ret_set);
}

/* ------------------------------------------------------------------------------------------ objects */

/* A walk along covers that comes to each concept once. */
struct walk {
    const struct lattice *lattice;
    size_t *last_walk; /* by concept: the number of the walk that came to it last */
    size_t number;
    uint32_t *waiting; /* concepts that have been come to, but not looked at */
    size_t waiting_count;
};

static void walk_release(struct walk *walk)
{
    free(walk->last_walk);
    free(walk->waiting);
}

static int walk_init(struct walk *walk, const struct lattice *lattice)
{
    walk->lattice = lattice;
    walk->last_walk = calloc(lattice->count + 1, sizeof(*walk->last_walk));
    walk->waiting = calloc(lattice->count + 1, sizeof(*walk->waiting));
    return walk->last_walk && walk->waiting ? 0 : -ENOMEM;
}

static void walk_come_to(struct walk *walk, uint32_t concept)
{
    if (walk->last_walk[concept] == walk->number)
        return;
    walk->last_walk[concept] = walk->number;
    walk->waiting[walk->waiting_count++] = concept;
}

static void walk_begin(struct walk *walk, uint32_t concept)
{
    walk->number++;
    walk_come_to(walk, concept);
}

void lattice_objects_release(struct lattice_objects *objects)
{
    free(objects->first);
    free(objects->objects);
    free(objects->extent_size);
    *objects = (struct lattice_objects){0};
}

/* The objects of a concept belong to the extents of all concepts above it. */
static void count_extents(struct walk *up, struct lattice_objects *objects)
{
    const struct lattice *lattice = up->lattice;

    for (uint32_t concept = 0; concept < lattice->count; concept ++) {
        size_t own = objects->first[concept + 1] - objects->first[concept];

        if (!own)
            continue;
        walk_begin(up, concept);
        while (up->waiting_count) {
            uint32_t at = up->waiting[--up->waiting_count];

            objects->extent_size[at] += own;
            for (size_t i = 0; i < lattice->concepts[at].upper_count; i++)
                walk_come_to(up, lattice->concepts[at].upper[i]);
        }
    }
}

int lattice_objects_of(const struct lattice *lattice, struct lattice_objects *ret_objects)
{
    CLEANUP(lattice_objects_release) struct lattice_objects objects = {0};
    CLEANUP(walk_release) struct walk up = {0};
    int r = walk_init(&up, lattice);

    objects.first = calloc(lattice->count + 2, sizeof(*objects.first));
    objects.objects = calloc(lattice->object_count + 1, sizeof(*objects.objects));
    objects.extent_size = calloc(lattice->count + 1, sizeof(*objects.extent_size));
    if (r < 0 || !objects.first || !objects.objects || !objects.extent_size)
        return -ENOMEM;
    for (size_t i = 0; i < lattice->object_count; i++)
        objects.first[lattice->concept_of[i] + 2]++;
    for (size_t i = 2; i < lattice->count + 2; i++)
        objects.first[i] += objects.first[i - 1];
    for (size_t i = 0; i < lattice->object_count; i++)
        objects.objects[objects.first[lattice->concept_of[i] + 1]++] = (uint32_t)i;
    count_extents(&up, &objects);
    *ret_objects = objects;
    objects = (struct lattice_objects){0};
    return 0;
}

static int compare_ids(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

    return (left > right) - (left < right);
}

int lattice_extent(const struct lattice *lattice, const struct lattice_objects *objects, uint32_t concept,
                   uint32_t **ret_extent)
{
    CLEANUP(walk_release) struct walk down = {0};
    uint32_t *extent = calloc(objects->extent_size[concept] + 1, sizeof(*extent));
    size_t count = 0;

    if (!extent || walk_init(&down, lattice) < 0) {
        free(extent);
        return -ENOMEM;
    }
    walk_begin(&down, concept);
    while (down.waiting_count) {
        uint32_t at = down.waiting[--down.waiting_count];

        for (size_t i = objects->first[at]; i < objects->first[at + 1]; i++)
            extent[count++] = objects->objects[i];
        for (size_t i = 0; i < lattice->concepts[at].lower_count; i++)
            walk_come_to(&down, lattice->concepts[at].lower[i]);
    }
    qsort(extent, count, sizeof(*extent), compare_ids);
    *ret_extent = extent;
    return 0;
}
