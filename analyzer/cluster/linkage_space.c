/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The clusters that are left, and the formulas of Lance and Williams for the distances to a new one. */
#include "analyzer/cluster/linkage_space.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int linkage_space_init(struct linkage_space *space, size_t count, double *distances)
{
    *space = (struct linkage_space){
        .count = count,
        .distances = distances,
        .sizes = malloc(count * sizeof(*space->sizes)),
        .left = malloc(count * sizeof(*space->left)),
        .left_count = count,
    };
    if (!space->sizes || !space->left)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        space->sizes[i] = 1;
        space->left[i] = (uint32_t)i;
    }
    return 0;
}

void linkage_space_release(struct linkage_space *space)
{
    free(space->sizes);
    free(space->left);
}

size_t linkage_space_above(const struct linkage_space *space, uint32_t place)
{
    size_t low = 0, high = space->left_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (space->left[middle] > place)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* A cluster z, and x and y that are merged: how far they are from each other, and how many objects they have.
 */
struct triple {
    double zx, zy, xy;
    double x, y, z;
};

/* What is computed in which order is SciPy's: another order rounds differently, and breaks ties. */

static inline double complete(const struct triple *t)
{
    return t->zx > t->zy ? t->zx : t->zy;
}

static inline double average(const struct triple *t)
{
    return (t->x * t->zx + t->y * t->zy) / (t->x + t->y);
}

static inline double weighted(const struct triple *t)
{
    return 0.5 * (t->zx + t->zy);
}

static inline double centroid(const struct triple *t)
{
    return sqrt((t->x * t->zx * t->zx + t->y * t->zy * t->zy - t->x * t->y * t->xy * t->xy / (t->x + t->y)) /
                (t->x + t->y));
}

static inline double median(const struct triple *t)
{
    return sqrt(0.5 * (t->zx * t->zx + t->zy * t->zy) - 0.25 * t->xy * t->xy);
}

static inline double ward(const struct triple *t)
{
    double share = 1.0 / (t->x + t->y + t->z);

    return sqrt((t->z + t->x) * share * t->zx * t->zx + (t->z + t->y) * share * t->zy * t->zy -
                t->z * share * t->xy * t->xy);
}

/* A copy for each formula: the call of it is the inner loop of everything. */
static inline __attribute__((always_inline)) void update(struct linkage_space *space, uint32_t x, uint32_t y,
                                                         double distance,
                                                         double (*formula)(const struct triple *))
{
    struct triple triple = {.xy = distance, .x = space->sizes[x], .y = space->sizes[y]};

    for (size_t i = 0; i < space->left_count; i++) {
        uint32_t z = space->left[i];
        double *changed;

        if (z == x || z == y)
            continue;
        changed = linkage_space_between(space, z, y);
        triple.zx = *linkage_space_between(space, z, x);
        triple.zy = *changed;
        triple.z = space->sizes[z];
        *changed = formula(&triple);
    }
}

void linkage_space_merge(struct linkage_space *space, enum linkage_method method, uint32_t x, uint32_t y,
                         double distance)
{
    size_t behind = linkage_space_above(space, x);

    if (method == LINKAGE_COMPLETE)
        update(space, x, y, distance, complete);
    else if (method == LINKAGE_AVERAGE)
        update(space, x, y, distance, average);
    else if (method == LINKAGE_WEIGHTED)
        update(space, x, y, distance, weighted);
    else if (method == LINKAGE_CENTROID)
        update(space, x, y, distance, centroid);
    else if (method == LINKAGE_MEDIAN)
        update(space, x, y, distance, median);
    else
        update(space, x, y, distance, ward);
    memmove(&space->left[behind - 1], &space->left[behind],
            (space->left_count - behind) * sizeof(*space->left));
    space->left_count--;
    space->sizes[y] += space->sizes[x];
}
