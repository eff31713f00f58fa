/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Once through the rows upwards to learn of each cluster what is in it, and once downwards to give it its
 * place: without recursion, as the tree may be as deep as it has objects. */
#include "analyzer/cluster/dendrogram.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/cleanup.h"

struct cluster {
    uint32_t upper, lower; /* parts */
    uint32_t lowest;       /* object */
    uint32_t leaves;
    uint32_t start; /* its first leaf */
    bool folded;    /* all objects are 0 apart */
};

void dendrogram_release(struct dendrogram *dendrogram)
{
    free(dendrogram->objects);
    free(dendrogram->starts);
    free(dendrogram->joins);
    *dendrogram = (struct dendrogram){0};
}

static void describe(struct cluster *clusters, const struct linkage_merge *merges, size_t count)
{
    for (uint32_t i = 0; i < count; i++)
        clusters[i] = (struct cluster){.lowest = i, .leaves = 1, .folded = true};
    for (size_t i = 0; i + 1 < count; i++) {
        struct cluster *made = &clusters[count + i];
        const struct cluster *a = &clusters[merges[i].a], *b = &clusters[merges[i].b];
        bool in_order = a->lowest < b->lowest;

        made->upper = in_order ? merges[i].a : merges[i].b;
        made->lower = in_order ? merges[i].b : merges[i].a;
        made->lowest = clusters[made->upper].lowest;
        made->folded = merges[i].distance == 0 && a->folded && b->folded;
        made->leaves = made->folded ? 1 : a->leaves + b->leaves;
    }
}

static void place(struct cluster *clusters, size_t count)
{
    for (size_t i = count ? count - 1 : 0; i-- > 0;) {
        const struct cluster *cluster = &clusters[count + i];
        struct cluster *upper = &clusters[cluster->upper], *lower = &clusters[cluster->lower];

        upper->start = cluster->start;
        lower->start = cluster->start + (cluster->folded ? 0 : upper->leaves);
    }
}

/* A cluster's join is behind the last leaf of its upper part. */
static uint32_t join_of(const struct cluster *clusters, uint32_t id)
{
    return clusters[id].folded ? DENDROGRAM_LEAF : clusters[clusters[id].lower].start - 1;
}

static double height_of(const struct dendrogram *dendrogram, uint32_t join)
{
    return join == DENDROGRAM_LEAF ? 0 : dendrogram->joins[join].height;
}

static void make_joins(const struct cluster *clusters, const struct linkage_merge *merges, size_t count,
                       struct dendrogram *dendrogram)
{
    for (size_t i = 0; i + 1 < count; i++) {
        const struct cluster *cluster = &clusters[count + i];
        struct dendrogram_join join = {.size = merges[i].size, .distance = merges[i].distance};
        double upper, lower;

        if (cluster->folded)
            continue;
        join.upper = join_of(clusters, cluster->upper);
        join.lower = join_of(clusters, cluster->lower);
        upper = height_of(dendrogram, join.upper);
        lower = height_of(dendrogram, join.lower);
        join.height = upper > lower ? upper : lower;
        if (join.distance > join.height)
            join.height = join.distance;
        dendrogram->root = join_of(clusters, (uint32_t)(count + i)); /* the last one stays */
        dendrogram->joins[dendrogram->root] = join;
    }
}

/* Sorts the objects by their leaves. */
static void fill_leaves(const struct cluster *clusters, size_t count, struct dendrogram *dendrogram)
{
    size_t *starts = dendrogram->starts;

    for (size_t i = 0; i < count; i++)
        starts[clusters[i].start + 1]++;
    for (size_t leaf = 0; leaf < dendrogram->leaf_count; leaf++)
        starts[leaf + 1] += starts[leaf];
    for (size_t i = count;
         i-- > 0;) /* each start moves down to where the leaf before ends, and is right then */
        dendrogram->objects[--starts[clusters[i].start + 1]] = (uint32_t)i;
    for (size_t leaf = 0; leaf < dendrogram->leaf_count; leaf++)
        starts[leaf] = starts[leaf + 1];
    starts[dendrogram->leaf_count] = count;
}

int dendrogram_build(const struct linkage_merge *merges, size_t count, struct dendrogram *ret_dendrogram)
{
    CLEANUP(dendrogram_release) struct dendrogram dendrogram = {0};
    AUTO_FREE struct cluster *clusters = calloc(2 * count + 1, sizeof(*clusters));

    if (!clusters)
        return -ENOMEM;
    describe(clusters, merges, count);
    place(clusters, count);
    dendrogram.leaf_count = count ? clusters[2 * count - 2].leaves : 0;
    dendrogram.objects = calloc(count + 1, sizeof(*dendrogram.objects));
    dendrogram.starts = calloc(dendrogram.leaf_count + 1, sizeof(*dendrogram.starts));
    dendrogram.joins = calloc(dendrogram.leaf_count + 1, sizeof(*dendrogram.joins));
    if (!dendrogram.objects || !dendrogram.starts || !dendrogram.joins)
        return -ENOMEM;
    make_joins(clusters, merges, count, &dendrogram);
    fill_leaves(clusters, count, &dendrogram);
    *ret_dendrogram = dendrogram;
    dendrogram = (struct dendrogram){0};
    return 0;
}
