/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Chains of nearest neighbours: from any cluster to the one nearest to it, from there on to the one nearest
 * to that, until two are nearest to each other; these are merged, and the chain continues from what is left of
 * it. Merging must never bring a third cluster nearer, which holds for complete, average, weighted and ward.
 * Then each scan of a row either makes the chain longer or ends in a merge, so that there are O(n) of them.
 *
 * It holds but for rounding: a mean of two equal distances can come out a bit below them. So a cluster can be
 * found that lies deeper in the chain already; the chain begins anew with the pair then.
 */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "analyzer/cluster/linkage_space.h"
#include "base/cleanup.h"

struct chain {
    uint32_t *places;
    size_t length;
    bool *holds; /* by place */
};

static void push(struct chain *chain, uint32_t place)
{
    chain->places[chain->length++] = place;
    chain->holds[place] = true;
}

static uint32_t pop(struct chain *chain)
{
    uint32_t place = chain->places[--chain->length];

    chain->holds[place] = false;
    return place;
}

/* The cluster nearest to that in `place`: of several, `preferred` if it is one of them (itself for none),
 * else the lowest. */
static uint32_t find_nearest(const struct linkage_space *space, uint32_t place, uint32_t preferred,
                             double *ret_distance)
{
    double shortest = preferred == place ? INFINITY : *linkage_space_between(space, place, preferred);
    uint32_t nearest = preferred;
    size_t i = 0, row;

    for (; space->left[i] < place; i++) {
        double distance = space->distances[linkage_space_row(space->count, space->left[i]) + place];

        if (distance < shortest) {
            shortest = distance;
            nearest = space->left[i];
        }
    }
    row = linkage_space_row(space->count, place);
    for (i++; i < space->left_count; i++) {
        double distance = space->distances[row + space->left[i]];

        if (distance < shortest) {
            shortest = distance;
            nearest = space->left[i];
        }
    }
    *ret_distance = shortest;
    return nearest;
}

/* Prolongs the chain until its last two are nearest to each other; returns their distance. */
static double find_pair(const struct linkage_space *space, struct chain *chain)
{
    if (!chain->length)
        push(chain, space->left[0]);
    for (;;) {
        uint32_t last = chain->places[chain->length - 1];
        uint32_t before = chain->length > 1 ? chain->places[chain->length - 2] : last;
        double distance;
        uint32_t nearest = find_nearest(space, last, before, &distance);

        if (chain->length > 1 && nearest == before)
            return distance;
        if (chain->holds[nearest]) {
            while (chain->length)
                pop(chain);
            push(chain, last);
        }
        push(chain, nearest);
    }
}

int linkage_by_chain(enum linkage_method method, struct linkage_space *space, struct linkage_merge *merges)
{
    AUTO_FREE uint32_t *places = malloc(space->count * sizeof(*places));
    AUTO_FREE bool *holds = calloc(space->count, sizeof(*holds));
    struct chain chain = {places, 0, holds};

    if (!places || !holds)
        return -ENOMEM;
    for (size_t i = 0; i + 1 < space->count; i++) {
        double distance = find_pair(space, &chain);
        uint32_t y = pop(&chain), x = pop(&chain);

        if (x > y) {
            uint32_t higher = x;

            x = y;
            y = higher;
        }
        merges[i] = (struct linkage_merge){.a = x, .b = y, .distance = distance};
        linkage_space_merge(space, method, x, y, distance);
    }
    return 0;
}
