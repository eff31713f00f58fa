/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One sweep from count clusters, an object each, down to two. A step merges two clusters in one clustering
 * and two in the other, by taking the objects of the smaller one over into the larger one: each object is
 * taken over at most log2(count) times. The contingency table, how many objects are in cluster i of the one
 * and j of the other, has at most `count` cells that are not 0; they are in a hash table, and the sums of
 * squares that B_k is made of follow them.
 */
#include "analyzer/cluster/b_score.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"

/* The cells that are not 0: open addressing with linear probing, at most half full. */
struct contingency {
    uint64_t *cells;  /* cluster of a << 32 | cluster of b */
    uint32_t *counts; /* 0: the slot is free */
    unsigned bits;    /* 2^bits slots */
};

/* A clustering on its way down. A cluster goes by the number of one of its objects. */
struct side {
    const struct linkage_merge *merges;
    uint32_t *cluster; /* by object */
    uint32_t *named;   /* by a linkage's number of a cluster: the cluster */
    uint32_t *sizes;   /* by cluster */
    uint32_t *next;    /* by object: the next one in the ring of the cluster's objects */
    uint64_t pairs;    /* of objects in one cluster */
};

struct sweep {
    struct side sides[2];
    struct contingency table;
    uint64_t common; /* pairs of objects that are together on both sides */
};

static size_t home(const struct contingency *table, uint64_t cell)
{
    return (size_t)(cell * 0x9e3779b97f4a7c15u >> (64 - table->bits));
}

/* The slot of the cell, or the free one where it belongs. */
static size_t find_slot(const struct contingency *table, uint64_t cell)
{
    size_t mask = ((size_t)1 << table->bits) - 1, slot = home(table, cell);

    while (table->counts[slot] && table->cells[slot] != cell)
        slot = (slot + 1) & mask;
    return slot;
}

/* Frees the slot of a cell that has become 0, and moves up those behind it that would not be found any more.
 */
static void free_slot(struct contingency *table, size_t hole)
{
    size_t mask = ((size_t)1 << table->bits) - 1;

    for (size_t slot = (hole + 1) & mask; table->counts[slot]; slot = (slot + 1) & mask) {
        if (((slot - home(table, table->cells[slot])) & mask) < ((slot - hole) & mask))
            continue;
        table->cells[hole] = table->cells[slot];
        table->counts[hole] = table->counts[slot];
        hole = slot;
    }
    table->counts[hole] = 0;
}

static uint64_t cell_of(const struct sweep *sweep, uint32_t object)
{
    return (uint64_t)sweep->sides[0].cluster[object] << 32 | sweep->sides[1].cluster[object];
}

/* An object leaves its cell, or enters it: the pairs it makes with those there are counted. */
static void leave_cell(struct sweep *sweep, uint32_t object)
{
    size_t slot = find_slot(&sweep->table, cell_of(sweep, object));
    uint32_t others = --sweep->table.counts[slot];

    sweep->common -= others;
    if (!others)
        free_slot(&sweep->table, slot);
}

static void enter_cell(struct sweep *sweep, uint32_t object)
{
    uint64_t cell = cell_of(sweep, object);
    size_t slot = find_slot(&sweep->table, cell);

    sweep->table.cells[slot] = cell;
    sweep->common += sweep->table.counts[slot]++;
}

/* Merges on one side what row `row` merges. */
static void merge(struct sweep *sweep, struct side *side, size_t count, size_t row)
{
    uint32_t large = side->named[side->merges[row].a], small = side->named[side->merges[row].b];
    uint32_t object, first;

    if (side->sizes[large] < side->sizes[small]) {
        uint32_t other = large;

        large = small;
        small = other;
    }
    side->pairs += (uint64_t)side->sizes[large] * side->sizes[small];
    object = small;
    do {
        leave_cell(sweep, object);
        side->cluster[object] = large;
        enter_cell(sweep, object);
        object = side->next[object];
    } while (object != small);
    /* Two rings become one when two of their links are exchanged. */
    first = side->next[large];
    side->next[large] = side->next[small];
    side->next[small] = first;
    side->sizes[large] += side->sizes[small];
    side->named[count + row] = large;
}

static int side_init(struct side *side, const struct linkage_merge *merges, size_t count)
{
    side->merges = merges;
    side->cluster = malloc(count * sizeof(*side->cluster));
    side->named = malloc(2 * count * sizeof(*side->named));
    side->sizes = malloc(count * sizeof(*side->sizes));
    side->next = malloc(count * sizeof(*side->next));
    if (!side->cluster || !side->named || !side->sizes || !side->next)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        side->cluster[i] = side->named[i] = side->next[i] = i;
        side->sizes[i] = 1;
    }
    return 0;
}

static int sweep_init(struct sweep *sweep, const struct linkage_merge *a, const struct linkage_merge *b,
                      size_t count)
{
    struct contingency *table = &sweep->table;
    int r = side_init(&sweep->sides[0], a, count);

    if (r >= 0)
        r = side_init(&sweep->sides[1], b, count);
    if (r < 0)
        return r;
    for (table->bits = 1; (size_t)1 << table->bits < 2 * count;)
        table->bits++;
    table->cells = malloc(sizeof(*table->cells) << table->bits);
    table->counts = calloc((size_t)1 << table->bits, sizeof(*table->counts));
    if (!table->cells || !table->counts)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        enter_cell(sweep, i);
    return 0;
}

static void sweep_release(struct sweep *sweep)
{
    for (int i = 0; i < 2; i++) {
        free(sweep->sides[i].cluster);
        free(sweep->sides[i].named);
        free(sweep->sides[i].sizes);
        free(sweep->sides[i].next);
    }
    free(sweep->table.cells);
    free(sweep->table.counts);
}

int b_score(const struct linkage_merge *a, const struct linkage_merge *b, size_t count, double *b_k,
            double *ret_mean)
{
    CLEANUP(sweep_release) struct sweep sweep = {0};
    double sum = 0;
    int r;

    if (count > LINKAGE_MAX_COUNT)
        return -EOVERFLOW;
    if (count < 3) {
        *ret_mean = 1;
        return 0;
    }
    r = sweep_init(&sweep, a, b, count);
    if (r < 0)
        return r;
    for (size_t k = count - 1; k >= 2; k--) {
        double score;

        merge(&sweep, &sweep.sides[0], count, count - 1 - k);
        merge(&sweep, &sweep.sides[1], count, count - 1 - k);
        score = (double)sweep.common / sqrt((double)sweep.sides[0].pairs * (double)sweep.sides[1].pairs);
        sum += score;
        if (b_k)
            b_k[k - 2] = score;
    }
    *ret_mean = sum / (double)(count - 2);
    return 0;
}
