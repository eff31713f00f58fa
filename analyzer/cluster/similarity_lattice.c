/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The similarity matrix, read off the concept lattice. What two objects share is the intent of the least
 * concept above both. Of the concepts above both it has the largest intent, so that one pass from the top to
 * the bottom finds it for one object and all concepts at once: a concept that is above the object shares its
 * whole intent with it, another one as much as the most of its upper covers does.
 */
#include <errno.h>
#include <stdlib.h>

#include "analyzer/cluster/lattice.h"
#include "analyzer/cluster/similarity_rows.h"
#include "base/cleanup.h"

/* The concepts by rank: in lattice_order, so that upper covers have lower ranks. */
struct ranked {
    size_t count;
    uint32_t *order, *rank; /* concepts by rank, ranks by concept */
    uint32_t *sizes;        /* of the intents */
    size_t *first;          /* by rank, and one more: in `upper` */
    uint32_t *upper;        /* the ranks of upper covers, rank by rank */

    size_t classes;
    uint32_t *class_of;   /* by object: which of the concepts that have own objects */
    uint32_t *class_rank; /* by class */
    size_t *class_sizes;  /* by class */
};

static void ranked_release(struct ranked *ranked)
{
    free(ranked->order);
    free(ranked->rank);
    free(ranked->sizes);
    free(ranked->first);
    free(ranked->upper);
    free(ranked->class_of);
    free(ranked->class_rank);
    free(ranked->class_sizes);
}

static int rank_concepts(const struct lattice *lattice, struct ranked *ranked)
{
    size_t links = 0;

    ranked->count = lattice->count;
    for (size_t i = 0; i < lattice->count; i++)
        links += lattice->concepts[i].upper_count;
    ranked->order = calloc(lattice->count + 1, sizeof(*ranked->order));
    ranked->rank = calloc(lattice->count + 1, sizeof(*ranked->rank));
    ranked->sizes = calloc(lattice->count + 1, sizeof(*ranked->sizes));
    ranked->first = calloc(lattice->count + 2, sizeof(*ranked->first));
    ranked->upper = calloc(links + 1, sizeof(*ranked->upper));
    if (!ranked->order || !ranked->rank || !ranked->sizes || !ranked->first || !ranked->upper)
        return -ENOMEM;
    lattice_order(lattice, ranked->order);
    for (size_t i = 0; i < lattice->count; i++)
        ranked->rank[ranked->order[i]] = (uint32_t)i;
    links = 0;
    for (size_t i = 0; i < lattice->count; i++) {
        const struct lattice_concept *concept = &lattice->concepts[ranked->order[i]];

        ranked->sizes[i] = (uint32_t) concept->intent_size;
        for (size_t j = 0; j < concept->upper_count; j++)
            ranked->upper[links++] = ranked->rank[concept->upper[j]];
        ranked->first[i + 1] = links;
    }
    return 0;
}

/* Objects of one concept are a class. */
static int find_classes(const struct lattice *lattice, struct ranked *ranked)
{
    AUTO_FREE uint32_t *class_by_concept = calloc(lattice->count + 1, sizeof(*class_by_concept));

    ranked->class_of = calloc(lattice->object_count + 1, sizeof(*ranked->class_of));
    ranked->class_rank = calloc(lattice->count + 1, sizeof(*ranked->class_rank));
    ranked->class_sizes = calloc(lattice->count + 1, sizeof(*ranked->class_sizes));
    if (!class_by_concept || !ranked->class_of || !ranked->class_rank || !ranked->class_sizes)
        return -ENOMEM;
    for (size_t i = 0; i < lattice->object_count; i++) {
        uint32_t concept = lattice->concept_of[i];

        if (!class_by_concept[concept]) {
            ranked->class_rank[ranked->classes] = ranked->rank[concept];
            ranked->class_sizes[ranked->classes] = lattice->concepts[concept].intent_size;
            class_by_concept[concept] = (uint32_t)++ranked->classes;
        }
        ranked->class_of[i] = class_by_concept[concept] - 1;
    }
    return 0;
}

/* Marks the concepts above `rank` and itself with `mark`: from it up, since covers have lower ranks. */
static void mark_above(const struct ranked *ranked, uint32_t rank, uint32_t mark, uint32_t *marks)
{
    marks[rank] = mark;
    for (size_t at = (size_t)rank + 1; at-- > 0;)
        if (marks[at] == mark)
            for (size_t i = ranked->first[at]; i < ranked->first[at + 1]; i++)
                marks[ranked->upper[i]] = mark;
}

/* The room: what each concept shares with the class, by rank, and then a mark for each. */
static void share(const void *context, uint32_t class, void *room, uint32_t *shared)
{
    const struct ranked *ranked = context;
    uint32_t *most = room, *marks = most + ranked->count;

    mark_above(ranked, ranked->class_rank[class], class + 1, marks);
    for (size_t at = 0; at < ranked->count; at++) {
        uint32_t count = 0;

        if (marks[at] == class + 1)
            count = ranked->sizes[at];
        else
            for (size_t i = ranked->first[at]; i < ranked->first[at + 1]; i++)
                count = most[ranked->upper[i]] > count ? most[ranked->upper[i]] : count;
        most[at] = count;
    }
    for (size_t other = 0; other < ranked->classes; other++)
        shared[other] = most[ranked->class_rank[other]];
}

int similarity_of_lattice(const struct lattice *lattice, struct similarity *ret_similarity)
{
    CLEANUP(ranked_release) struct ranked ranked = {0};
    struct similarity_rows rows = {.objects = lattice->object_count, .share = share, .context = &ranked};
    int r = rank_concepts(lattice, &ranked);

    if (r < 0)
        return r;
    r = find_classes(lattice, &ranked);
    if (r < 0)
        return r;
    rows.classes = ranked.classes;
    rows.class_of = ranked.class_of;
    rows.sizes = ranked.class_sizes;
    rows.room_size = 2 * ranked.count * sizeof(uint32_t);
    return similarity_from_rows(&rows, ret_similarity);
}
