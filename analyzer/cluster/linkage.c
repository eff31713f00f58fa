/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The choice of the algorithm, single linkage, the labelling of rows found out of order, and cuts. */
#include "analyzer/cluster/linkage.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/cluster/linkage_space.h"
#include "base/cleanup.h"

static const char *const names[LINKAGE_METHODS] = {"single",   "complete", "average", "weighted",
                                                   "centroid", "median",   "ward"};

const char *linkage_name(enum linkage_method method)
{
    return names[method];
}

int linkage_parse(const char *name, enum linkage_method *ret_method)
{
    for (int method = 0; method < LINKAGE_METHODS; method++) {
        if (!strcmp(name, names[method])) {
            *ret_method = (enum linkage_method)method;
            return 0;
        }
    }
    return -EINVAL;
}

/* Prim's algorithm: the tree grows by the object nearest to it, the lowest of several. The rows are the edges
 * in the order in which they are found. */
static int find_spanning_tree(struct linkage_space *space, struct linkage_merge *merges)
{
    AUTO_FREE double *reach =
        malloc(space->count * sizeof(*reach)); /* from the tree to each object outside */
    uint32_t in = 0;                           /* the last one taken in */

    if (!reach)
        return -ENOMEM;
    for (size_t i = 0; i < space->count; i++)
        reach[i] = INFINITY;
    memmove(space->left, space->left + 1, --space->left_count * sizeof(*space->left));
    for (size_t k = 0; space->left_count; k++) {
        size_t nearest = 0;
        double shortest = INFINITY;

        for (size_t i = 0; i < space->left_count; i++) {
            uint32_t out = space->left[i];
            double distance = *linkage_space_between(space, in, out);

            if (distance < reach[out])
                reach[out] = distance;
            if (reach[out] < shortest) {
                shortest = reach[out];
                nearest = i;
            }
        }
        merges[k] = (struct linkage_merge){.a = in, .b = space->left[nearest], .distance = shortest};
        in = space->left[nearest];
        space->left_count--;
        memmove(&space->left[nearest], &space->left[nearest + 1],
                (space->left_count - nearest) * sizeof(*space->left));
    }
    return 0;
}

static int compare_rows(const void *a, const void *b)
{
    const struct linkage_merge *left = a, *right = b;

    if (left->distance != right->distance)
        return left->distance < right->distance ? -1 : 1;
    return left->size < right->size ? -1 : 1;
}

/* The cluster that `object` is in by now. Shortens the way for the next time. */
static uint32_t find_root(uint32_t *parents, uint32_t object)
{
    uint32_t root = object;

    while (parents[root] != root)
        root = parents[root];
    while (parents[object] != root) {
        uint32_t next = parents[object];

        parents[object] = root;
        object = next;
    }
    return root;
}

/* Sorts rows whose a and b are one object of each of the two clusters by distance, equal ones in the order
 * found, and puts the clusters there. */
static int label(struct linkage_merge *merges, size_t count)
{
    AUTO_FREE uint32_t *parents = malloc((2 * count - 1) * sizeof(*parents));
    AUTO_FREE uint32_t *sizes = malloc((2 * count - 1) * sizeof(*sizes));

    if (!parents || !sizes)
        return -ENOMEM;
    for (size_t i = 0; i < 2 * count - 1; i++) {
        parents[i] = (uint32_t)i;
        sizes[i] = 1;
    }
    for (size_t i = 0; i + 1 < count; i++)
        merges[i].size = (uint32_t)i;
    qsort(merges, count - 1, sizeof(*merges), compare_rows);
    for (size_t i = 0; i + 1 < count; i++) {
        uint32_t a = find_root(parents, merges[i].a), b = find_root(parents, merges[i].b);
        size_t made = count + i;

        parents[a] = parents[b] = (uint32_t)made;
        sizes[made] = sizes[a] + sizes[b];
        merges[i].a = a < b ? a : b;
        merges[i].b = a < b ? b : a;
        merges[i].size = sizes[made];
    }
    return 0;
}

int linkage_of(enum linkage_method method, size_t count, double *distances, struct linkage_merge *merges)
{
    CLEANUP(linkage_space_release) struct linkage_space space = {0};
    int r;

    if (count > LINKAGE_MAX_COUNT)
        return -EOVERFLOW;
    if (count < 2)
        return 0;
    for (size_t i = 0; i < count * (count - 1) / 2; i++)
        if (!(distances[i] >= 0 && distances[i] <= LINKAGE_MAX_DISTANCE))
            return -EINVAL;
    r = linkage_space_init(&space, count, distances);
    if (r < 0)
        return r;
    if (method == LINKAGE_CENTROID || method == LINKAGE_MEDIAN)
        return linkage_generic(method, &space, merges);
    if (method == LINKAGE_SINGLE)
        r = find_spanning_tree(&space, merges);
    else
        r = linkage_by_chain(method, &space, merges);
    return r < 0 ? r : label(merges, count);
}

int linkage_cut(const struct linkage_merge *merges, size_t count, size_t clusters, uint32_t *labels)
{
    AUTO_FREE uint32_t *roots = NULL, *numbers = NULL; /* by cluster: the one that it ends up in; its label */
    size_t made = 2 * count - clusters;
    uint32_t next = 0;

    if (clusters < 1 || clusters > count)
        return -EINVAL;
    roots = calloc(made, sizeof(*roots));
    numbers = calloc(made, sizeof(*numbers));
    if (!roots || !numbers)
        return -ENOMEM;
    for (size_t i = 0; i < made; i++) {
        roots[i] = (uint32_t)i;
        numbers[i] = UINT32_MAX;
    }
    for (size_t i = made; i-- > count;)
        roots[merges[i - count].a] = roots[merges[i - count].b] = roots[i];
    for (size_t i = 0; i < count; i++) {
        if (numbers[roots[i]] == UINT32_MAX)
            numbers[roots[i]] = next++;
        labels[i] = numbers[roots[i]];
    }
    return 0;
}
