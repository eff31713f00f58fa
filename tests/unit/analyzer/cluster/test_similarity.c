/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#include "analyzer/cluster/similarity.h"
#include "tests/unit/analyzer/attribute_sets.h"
#include "tests/unit/analyzer/streams.h"

static double jaccard(const struct attribute_set *a, const struct attribute_set *b)
{
    size_t shared = shared_count(a, b), all = a->count + b->count - shared;

    return all ? (double)shared / (double)all : 1;
}

static void expect_similarity(const struct similarity *similarity, const struct attribute_set *sets,
                              size_t count)
{
    cr_assert_eq(similarity->count, count);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count; j++)
            cr_assert(similarity_at(similarity, i, j) == jaccard(&sets[i], &sets[j]), "%zu, %zu of %zu", i, j,
                      count);
}

static void check_sets(const struct attribute_set *sets, size_t count)
{
    struct similarity similarity;

    cr_assert_eq(similarity_of_sets(sets, count, &similarity), 0);
    expect_similarity(&similarity, sets, count);
    similarity_release(&similarity);
}

Test(similarity, triangle_is_laid_out_row_by_row)
{
    size_t index = 0;

    for (size_t i = 0; i < 7; i++)
        for (size_t j = i + 1; j < 7; j++)
            cr_assert_eq(similarity_index(7, i, j), index++);
    cr_assert_eq(index, similarity_size(7));
    cr_assert_eq(similarity_size(0), 0);
    cr_assert_eq(similarity_size(1), 0);
}

Test(similarity, random_sets_of_all_densities)
{
    uint64_t seed = 11;

    for (uint32_t round = 0; round < 600; round++) {
        size_t count = random_below(&seed, 40);
        uint32_t attributes = random_below(&seed, 150), percent = random_below(&seed, 101);
        struct attribute_set *sets = random_sets(&seed, count, attributes, percent);

        check_sets(sets, count);
        sets_free(sets, count);
    }
}

/* Some attributes are bits, some lists, and several threads compute. */
Test(similarity, many_sets)
{
    enum { COUNT = 1100, ATTRIBUTES = 300 };
    struct attribute_set *sets = calloc(COUNT, sizeof(*sets));
    struct similarity similarity;
    uint64_t seed = 3;

    for (size_t i = 0; i < COUNT; i++) {
        sets[i].ids = calloc(ATTRIBUTES, sizeof(*sets[i].ids));
        for (uint32_t id = 0; id < ATTRIBUTES; id++)
            if (random_below(&seed, ATTRIBUTES) < id / 3)
                sets[i].ids[sets[i].count++] = id * 7;
    }
    cr_assert_eq(similarity_of_sets(sets, COUNT, &similarity), 0);
    for (size_t check = 0; check < 20000; check++) {
        size_t i = random_below(&seed, COUNT), j = random_below(&seed, COUNT);

        cr_assert(similarity_at(&similarity, i, j) == jaccard(&sets[i], &sets[j]), "%zu, %zu", i, j);
    }
    similarity_release(&similarity);
    sets_free(sets, COUNT);
}

Test(similarity, empty_sets_are_alike)
{
    uint32_t id = 3;
    struct attribute_set sets[] = {{NULL, 0}, {&id, 1}, {NULL, 0}};
    struct similarity similarity;

    cr_assert_eq(similarity_of_sets(sets, 3, &similarity), 0);
    cr_expect(similarity.values[0] == 0 && similarity.values[1] == 1 && similarity.values[2] == 0);
    similarity_release(&similarity);
    cr_assert_eq(similarity_of_sets(NULL, 0, &similarity), 0);
    cr_expect_eq(similarity.count, 0);
    similarity_release(&similarity);
}
