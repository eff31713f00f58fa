/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "analyzer/cluster/dendrogram.h"
#include "tests/unit/analyzer/streams.h"

enum { MOST = 40 };

static void expect_leaf(const struct dendrogram *dendrogram, size_t leaf, size_t count,
                        const uint32_t *objects)
{
    cr_assert_eq(dendrogram->starts[leaf + 1] - dendrogram->starts[leaf], count);
    cr_assert_arr_eq(&dendrogram->objects[dendrogram->starts[leaf]], objects, count * sizeof(*objects));
}

Test(dendrogram, has_its_leaves_in_order_and_equal_objects_in_one)
{
    /* 1 and 4 are equal, and so is 2; 0 and 3 are near; at last everything, drawn no lower than what it
     * joins. */
    const struct linkage_merge merges[] = {{1, 4, 0, 2}, {2, 5, 0, 3}, {0, 3, 0.5, 2}, {6, 7, 0.25, 5}};
    struct dendrogram dendrogram;

    cr_assert_eq(dendrogram_build(merges, 5, &dendrogram), 0);
    cr_assert_eq(dendrogram.leaf_count, 3);
    expect_leaf(&dendrogram, 0, 1, (uint32_t[]){0});
    expect_leaf(&dendrogram, 1, 1, (uint32_t[]){3});
    expect_leaf(&dendrogram, 2, 3, (uint32_t[]){1, 2, 4});
    cr_assert_eq(dendrogram.root, 1);
    cr_assert(dendrogram.joins[0].upper == DENDROGRAM_LEAF && dendrogram.joins[0].lower == DENDROGRAM_LEAF);
    cr_assert(dendrogram.joins[0].distance == 0.5 && dendrogram.joins[0].size == 2);
    cr_assert(dendrogram.joins[1].upper == 0 && dendrogram.joins[1].lower == DENDROGRAM_LEAF);
    cr_assert(dendrogram.joins[1].distance == 0.25 && dendrogram.joins[1].height == 0.5);
    cr_assert_eq(dendrogram.joins[1].size, 5);
    dendrogram_release(&dendrogram);
}

Test(dendrogram, of_next_to_nothing)
{
    const struct linkage_merge same = {0, 1, 0, 2}, other = {0, 1, 0.5, 2};
    struct dendrogram dendrogram;

    cr_assert_eq(dendrogram_build(NULL, 0, &dendrogram), 0);
    cr_assert_eq(dendrogram.leaf_count, 0);
    dendrogram_release(&dendrogram);
    cr_assert_eq(dendrogram_build(NULL, 1, &dendrogram), 0);
    cr_assert_eq(dendrogram.leaf_count, 1);
    expect_leaf(&dendrogram, 0, 1, (uint32_t[]){0});
    dendrogram_release(&dendrogram);
    cr_assert_eq(dendrogram_build(&same, 2, &dendrogram), 0);
    cr_assert_eq(dendrogram.leaf_count, 1);
    expect_leaf(&dendrogram, 0, 2, (uint32_t[]){0, 1});
    dendrogram_release(&dendrogram);
    cr_assert_eq(dendrogram_build(&other, 2, &dendrogram), 0);
    cr_assert_eq(dendrogram.leaf_count, 2);
    dendrogram_release(&dendrogram);
}

/* Leaves `from` to `to` are what the join has, and the two joins or leaves that it names have it all. */
static void expect_span(const struct dendrogram *dendrogram, uint32_t join, size_t from, size_t to)
{
    const struct dendrogram_join *at = &dendrogram->joins[join];

    cr_assert(from <= join && join < to);
    cr_assert_eq(at->size, dendrogram->starts[to + 1] - dendrogram->starts[from]);
    cr_assert_geq(at->height, at->distance);
    if (at->upper == DENDROGRAM_LEAF) {
        cr_assert_eq(join, from);
    } else {
        cr_assert_geq(at->height, dendrogram->joins[at->upper].height);
        expect_span(dendrogram, at->upper, from, join);
    }
    if (at->lower == DENDROGRAM_LEAF) {
        cr_assert_eq(join + 1, to);
    } else {
        cr_assert_geq(at->height, dendrogram->joins[at->lower].height);
        expect_span(dendrogram, at->lower, join + 1, to);
    }
}

/* The distance between objects of different leaves that are neighbours is that of the row that merges them.
 */
static void expect_rows(const struct dendrogram *dendrogram, const struct linkage_merge *merges, size_t count)
{
    uint32_t labels[MOST];

    for (size_t i = 0; i + 1 < dendrogram->leaf_count; i++) {
        uint32_t above = dendrogram->objects[dendrogram->starts[i]];
        uint32_t below = dendrogram->objects[dendrogram->starts[i + 1]];
        size_t row = 0;

        for (; row + 1 < count; row++) {
            cr_assert_eq(linkage_cut(merges, count, count - 1 - row, labels), 0);
            if (labels[above] == labels[below])
                break;
        }
        cr_assert_eq(dendrogram->joins[i].distance, merges[row].distance);
        cr_assert_eq(dendrogram->joins[i].size, merges[row].size);
    }
}

Test(dendrogram, draws_every_row)
{
    uint64_t seed = 1;

    for (int round = 0; round < 300; round++) {
        size_t count = 2 + random_below(&seed, MOST - 1);
        uint32_t values = 2 + random_below(&seed, 50);
        double distances[MOST * (MOST - 1) / 2];
        struct linkage_merge merges[MOST];
        struct dendrogram dendrogram;

        for (size_t i = 0; i < count * (count - 1) / 2; i++)
            distances[i] = random_below(&seed, values);
        cr_assert_eq(linkage_of((enum linkage_method)(round % LINKAGE_METHODS), count, distances, merges), 0);
        cr_assert_eq(dendrogram_build(merges, count, &dendrogram), 0);
        if (dendrogram.leaf_count > 1)
            expect_span(&dendrogram, dendrogram.root, 0, dendrogram.leaf_count - 1);
        expect_rows(&dendrogram, merges, count);
        dendrogram_release(&dendrogram);
    }
}
