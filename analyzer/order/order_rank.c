/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Temporal ranks: all points of a function at once, by the same rules as order_compare().
 *
 * Seen from the function (or from one iteration of a loop), every point is by itself or in one of the loops
 * directly inside. Those units are ordered by position, and each takes up as many ranks as it has steps: a
 * single point one, a loop those of all its iterations, one after the other, each ordered in the same way
 * within.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/order/relative_progress.h"

struct ranking {
    const struct flow_graph *graph;
    const struct order_point *points;
    struct order_place *places;
};

/* What is ordered by position: a point, or a loop with the points in it. */
struct unit {
    uint32_t loop; /* FLOW_NONE: a point */
    uint64_t address;
    size_t first, count; /* of its points, in the row of numbers that is being ranked */
    uint32_t base, height;
};

static int rank_level(const struct ranking *ranking, uint32_t *row, size_t count, uint32_t loop,
                      uint32_t base, uint32_t *ret_height);

/* The loop directly inside `loop` that holds the point; FLOW_NONE: none does. */
static uint32_t loop_inside(const struct flow_graph *graph, uint32_t loop, uint64_t address)
{
    uint32_t inside = graph->blocks[flow_graph_block(graph, address)].loop;

    if (inside == loop)
        return FLOW_NONE;
    while (graph->loops[inside].parent != loop)
        inside = graph->loops[inside].parent;
    return inside;
}

/* ---------------------------------------------------------------------------------------------- sorting */

struct by_unit {
    uint64_t loop, address;
    uint32_t number;
};

static int compare_units(const void *left, const void *right)
{
    const struct by_unit *a = left, *b = right;

    if (a->loop != b->loop)
        return a->loop < b->loop ? -1 : 1;
    if (a->loop == FLOW_NONE && a->address != b->address)
        return a->address < b->address ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

/* Sorts the row so that points of a unit lie side by side. Returns the units. */
static int find_units(const struct ranking *ranking, uint32_t *row, size_t count, uint32_t loop,
                      struct unit **ret_units, size_t *ret_count)
{
    AUTO_FREE struct by_unit *sorted = calloc(count, sizeof(*sorted));
    AUTO_FREE struct unit *units = calloc(count, sizeof(*units));
    size_t found = 0;

    if (!sorted || !units)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        uint64_t address = ranking->points[row[i]].address;

        sorted[i] = (struct by_unit){loop_inside(ranking->graph, loop, address), address, row[i]};
    }
    qsort(sorted, count, sizeof(*sorted), compare_units);
    for (size_t i = 0; i < count; i++) {
        row[i] = sorted[i].number;
        if (i == 0 || sorted[i].loop != sorted[i - 1].loop ||
            (sorted[i].loop == FLOW_NONE && sorted[i].address != sorted[i - 1].address))
            units[found++] =
                (struct unit){.loop = (uint32_t)sorted[i].loop, .address = sorted[i].address, .first = i};
        units[found - 1].count++;
    }
    *ret_units = take_pointer(units);
    *ret_count = found;
    return 0;
}

struct by_iteration {
    uint64_t count;
    bool unknown;
    uint32_t number;
};

static int compare_iterations(const void *left, const void *right)
{
    const struct by_iteration *a = left, *b = right;

    if (a->unknown != b->unknown)
        return a->unknown ? 1 : -1;
    if (a->count != b->count)
        return a->count < b->count ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

/* ---------------------------------------------------------------------------------------------- a loop */

static bool is_counted(const struct flow_graph *graph, uint32_t loop)
{
    return !(graph->blocks[graph->loops[loop].header].flags & FLOW_BLOCK_IRREDUCIBLE);
}

static void mark(const struct ranking *ranking, const uint32_t *row, size_t count, bool assumed,
                 bool unordered)
{
    for (size_t i = 0; i < count; i++) {
        ranking->places[row[i]].assumed |= assumed;
        ranking->places[row[i]].unordered |= unordered;
    }
}

/* The points of a loop by its iterations: those whose iteration is not known come last in the row, as one
 * iteration of which it is assumed that all are in it. */
static int sort_iterations(const struct ranking *ranking, uint32_t *row, size_t count, uint32_t loop,
                           struct by_iteration *sorted)
{
    uint32_t depth = ranking->graph->loops[loop].depth;

    for (size_t i = 0; i < count; i++) {
        const struct order_point *point = &ranking->points[row[i]];
        bool known = depth <= point->depth && point->iterations[depth - 1].known;

        sorted[i] = (struct by_iteration){known ? point->iterations[depth - 1].count : 0, !known, row[i]};
    }
    qsort(sorted, count, sizeof(*sorted), compare_iterations);
    for (size_t i = 0; i < count; i++)
        row[i] = sorted[i].number;
    return 0;
}

static int rank_loop(const struct ranking *ranking, uint32_t *row, size_t count, uint32_t loop, uint32_t base,
                     uint32_t *ret_height)
{
    AUTO_FREE struct by_iteration *sorted = calloc(count, sizeof(*sorted));
    uint32_t height = 0, inside;
    size_t next;
    int r = sorted ? sort_iterations(ranking, row, count, loop, sorted) : -ENOMEM;

    if (r == 0 && !is_counted(ranking->graph, loop))
        mark(ranking, row, count, false, true);
    for (size_t i = 0; r == 0 && i < count; i = next) {
        for (next = i + 1; next < count && sorted[next].unknown == sorted[i].unknown &&
                           sorted[next].count == sorted[i].count;
             next++)
            continue;
        if (sorted[i].unknown)
            mark(ranking, row + i, next - i, next - i > 1, i > 0);
        if (sorted[i].unknown && i > 0)
            mark(ranking, row, i, false, true);
        r = rank_level(ranking, row + i, next - i, loop, sorted[i].unknown ? base : base + height, &inside);
        if (!sorted[i].unknown)
            height += r == 0 ? inside : 0;
        else if (r == 0 && inside > height)
            height = inside;
    }
    *ret_height = height;
    return r;
}

/* ---------------------------------------------------------------------------------------------- a level */

static int rank_unit(const struct ranking *ranking, uint32_t *row, struct unit *unit)
{
    if (unit->loop != FLOW_NONE)
        return rank_loop(ranking, row + unit->first, unit->count, unit->loop, 0, &unit->height);
    unit->height = 1;
    return 0;
}

/* Moves each unit behind the last of those that come before it: `before[i * count + k]` says that i comes
 * before k. At most as many rounds as there are units. */
static void place_units(struct unit *units, size_t count, const bool *before)
{
    bool moved = true;

    for (size_t round = 0; moved && round < count; round++) {
        moved = false;
        for (size_t i = 0; i < count; i++)
            for (size_t k = 0; k < count; k++) {
                if (!before[i * count + k] || units[k].base >= units[i].base + units[i].height)
                    continue;
                units[k].base = units[i].base + units[i].height;
                moved = true;
            }
    }
}

static int compare_all(const struct ranking *ranking, const uint32_t *row, const struct unit *units,
                       size_t count, bool *before)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t k = i + 1; k < count; k++) {
            enum flow_order order;
            int r = flow_graph_order(ranking->graph, units[i].address, units[k].address, &order);

            if (r < 0)
                return r;
            before[i * count + k] = order == FLOW_BEFORE;
            before[k * count + i] = order == FLOW_AFTER;
            if (order == FLOW_BEFORE || order == FLOW_AFTER)
                continue;
            mark(ranking, row + units[i].first, units[i].count, false, true);
            mark(ranking, row + units[k].first, units[k].count, false, true);
        }
    }
    return 0;
}

static int rank_level(const struct ranking *ranking, uint32_t *row, size_t count, uint32_t loop,
                      uint32_t base, uint32_t *ret_height)
{
    AUTO_FREE struct unit *units = NULL;
    AUTO_FREE bool *before = NULL;
    size_t unit_count = 0;
    int r = find_units(ranking, row, count, loop, &units, &unit_count);

    *ret_height = 0;
    before = r == 0 ? calloc(unit_count * unit_count + 1, sizeof(*before)) : NULL;
    if (!before)
        return -ENOMEM;
    for (size_t i = 0; r == 0 && i < unit_count; i++)
        r = rank_unit(ranking, row, &units[i]);
    if (r == 0)
        r = compare_all(ranking, row, units, unit_count, before);
    if (r < 0)
        return r;
    place_units(units, unit_count, before);
    for (size_t i = 0; i < unit_count; i++) {
        for (size_t k = 0; k < units[i].count; k++)
            ranking->places[row[units[i].first + k]].rank += base + units[i].base;
        if (units[i].base + units[i].height > *ret_height)
            *ret_height = units[i].base + units[i].height;
    }
    return 0;
}

int order_rank(const struct order_function *function, const struct order_point *points, size_t count,
               struct order_place *ret_places)
{
    struct ranking ranking = {function->graph, points, ret_places};
    AUTO_FREE uint32_t *row = calloc(count + 1, sizeof(*row));
    uint32_t height;
    size_t known = 0;

    if (!row)
        return -ENOMEM;
    memset(ret_places, 0, count * sizeof(*ret_places));
    for (size_t i = 0; i < count; i++)
        if (function->graph && !function->graph->returns_twice &&
            flow_graph_block(function->graph, points[i].address) != FLOW_NONE)
            row[known++] = (uint32_t)i;
    for (size_t i = 0; known < count && count > 1 && i < count; i++)
        ret_places[i].unordered = true;
    return known ? rank_level(&ranking, row, known, FLOW_NONE, 0, &height) : 0;
}
