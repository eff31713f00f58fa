/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Müllner's generic algorithm (arXiv:1109.2378, figure 3), which finds the nearest two of all clusters at
 * each step, whatever a merge does to the distances. For each cluster but the last it keeps the nearest one
 * in a higher place, and how far that is; either may be out of date, but then the distance kept is too low,
 * never too high. A heap gives the lowest; if the distances say otherwise, the row is searched once more.
 *
 * The heap's shape decides between equal distances, so it is exactly SciPy's.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "analyzer/cluster/linkage_space.h"
#include "base/cleanup.h"

struct candidates {
    uint32_t *nearest; /* by place: a cluster in a higher place */
    double *bounds;    /* by place: the cluster nearest is not nearer than that */
    uint32_t *heap;    /* places, those with the lowest bounds on top */
    uint32_t *slots;   /* by place: where it is in the heap */
    size_t count;      /* in the heap */
};

static void swap(struct candidates *candidates, size_t i, size_t j)
{
    uint32_t place = candidates->heap[i];

    candidates->heap[i] = candidates->heap[j];
    candidates->heap[j] = place;
    candidates->slots[candidates->heap[i]] = (uint32_t)i;
    candidates->slots[candidates->heap[j]] = (uint32_t)j;
}

static double bound_at(const struct candidates *candidates, size_t slot)
{
    return candidates->bounds[candidates->heap[slot]];
}

static void sift_up(struct candidates *candidates, size_t slot)
{
    while (slot > 0 && bound_at(candidates, (slot - 1) / 2) > bound_at(candidates, slot)) {
        swap(candidates, slot, (slot - 1) / 2);
        slot = (slot - 1) / 2;
    }
}

static void sift_down(struct candidates *candidates, size_t slot)
{
    for (size_t child = 2 * slot + 1; child < candidates->count; child = 2 * slot + 1) {
        if (child + 1 < candidates->count && bound_at(candidates, child + 1) < bound_at(candidates, child))
            child++;
        if (bound_at(candidates, slot) <= bound_at(candidates, child))
            return;
        swap(candidates, slot, child);
        slot = child;
    }
}

static void set_candidate(struct candidates *candidates, uint32_t place, uint32_t nearest, double bound)
{
    double old = candidates->bounds[place];

    candidates->nearest[place] = nearest;
    candidates->bounds[place] = bound;
    if (bound < old)
        sift_up(candidates, candidates->slots[place]);
    else
        sift_down(candidates, candidates->slots[place]);
}

static void remove_top(struct candidates *candidates)
{
    swap(candidates, 0, --candidates->count);
    sift_down(candidates, 0);
}

/* The nearest cluster in a higher place, the lowest of several; there is one for all but the last. */
static uint32_t find_nearest(const struct linkage_space *space, uint32_t place, double *ret_distance)
{
    size_t row = linkage_space_row(space->count, place);
    uint32_t nearest = place;
    double shortest = INFINITY;

    for (size_t i = linkage_space_above(space, place); i < space->left_count; i++) {
        double distance = space->distances[row + space->left[i]];

        if (distance < shortest) {
            shortest = distance;
            nearest = space->left[i];
        }
    }
    *ret_distance = shortest;
    return nearest;
}

static void fill(struct candidates *candidates, const struct linkage_space *space)
{
    candidates->count = space->count - 1;
    for (uint32_t place = 0; place < candidates->count; place++) {
        candidates->nearest[place] = find_nearest(space, place, &candidates->bounds[place]);
        candidates->heap[place] = candidates->slots[place] = place;
    }
    for (size_t slot = candidates->count / 2; slot-- > 0;)
        sift_down(candidates, slot);
}

/* Takes the lower place of the nearest two of all clusters out of the heap. */
static uint32_t take_nearest(struct candidates *candidates, const struct linkage_space *space)
{
    for (;;) {
        uint32_t x = candidates->heap[0], nearest;
        double distance;

        if (candidates->bounds[x] == *linkage_space_between(space, x, candidates->nearest[x])) {
            remove_top(candidates);
            return x;
        }
        nearest = find_nearest(space, x, &distance);
        set_candidate(candidates, x, nearest, distance);
    }
}

/* Brings the candidates up to date after the merge of x and y into y. */
static void follow_merge(struct candidates *candidates, const struct linkage_space *space, uint32_t x,
                         uint32_t y)
{
    double distance;
    uint32_t nearest;

    for (size_t i = 0; space->left[i] < x; i++)
        if (candidates->nearest[space->left[i]] == x)
            candidates->nearest[space->left[i]] = y; /* a guess as good as any, and often right */
    for (size_t i = 0; space->left[i] < y; i++) {
        uint32_t z = space->left[i];

        distance = *linkage_space_between(space, z, y);
        if (distance < candidates->bounds[z])
            set_candidate(candidates, z, y, distance);
    }
    if (y + 1 < space->count) {
        nearest = find_nearest(space, y, &distance);
        set_candidate(candidates, y, nearest, distance);
    }
}

int linkage_generic(enum linkage_method method, struct linkage_space *space, struct linkage_merge *merges)
{
    AUTO_FREE uint32_t *ids = calloc(space->count, sizeof(*ids)); /* of the cluster in a place */
    AUTO_FREE uint32_t *nearest = calloc(space->count, sizeof(*nearest));
    AUTO_FREE uint32_t *heap = calloc(space->count, sizeof(*heap));
    AUTO_FREE uint32_t *slots = calloc(space->count, sizeof(*slots));
    AUTO_FREE double *bounds = calloc(space->count, sizeof(*bounds));
    struct candidates candidates = {nearest, bounds, heap, slots, 0};

    if (!ids || !nearest || !heap || !slots || !bounds)
        return -ENOMEM;
    for (uint32_t place = 0; place < space->count; place++)
        ids[place] = place;
    fill(&candidates, space);
    for (size_t i = 0; i + 1 < space->count; i++) {
        uint32_t x = take_nearest(&candidates, space), y = nearest[x];
        double distance = bounds[x];

        linkage_space_merge(space, method, x, y, distance);
        merges[i] = (struct linkage_merge){
            .a = ids[x] < ids[y] ? ids[x] : ids[y],
            .b = ids[x] < ids[y] ? ids[y] : ids[x],
            .distance = distance,
            .size = space->sizes[y],
        };
        ids[y] = (uint32_t)(space->count + i);
        follow_merge(&candidates, space, x, y);
    }
    return 0;
}
