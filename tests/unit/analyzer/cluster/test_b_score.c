/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "analyzer/cluster/b_score.h"
#include "tests/unit/analyzer/streams.h"

enum { MOST = 50 };

/* The definition, with the contingency table of two cuts. */
static double direct(const struct linkage_merge *a, const struct linkage_merge *b, size_t count, size_t k)
{
    uint32_t in_a[MOST], in_b[MOST];
    double table[MOST][MOST] = {{0}}, rows[MOST] = {0}, columns[MOST] = {0};
    double t = -(double)count, p = -(double)count, q = -(double)count;

    cr_assert_eq(linkage_cut(a, count, k, in_a), 0);
    cr_assert_eq(linkage_cut(b, count, k, in_b), 0);
    for (size_t i = 0; i < count; i++) {
        table[in_a[i]][in_b[i]]++;
        rows[in_a[i]]++;
        columns[in_b[i]]++;
    }
    for (size_t i = 0; i < k; i++) {
        p += rows[i] * rows[i];
        q += columns[i] * columns[i];
        for (size_t j = 0; j < k; j++)
            t += table[i][j] * table[i][j];
    }
    return t / sqrt(p * q);
}

/* A clustering of random distances, of which at most `values` are different. */
static void random_clustering(uint64_t *seed, size_t count, uint32_t values, struct linkage_merge *merges)
{
    double *distances = malloc((count * (count - 1) / 2 + 1) * sizeof(*distances));

    for (size_t i = 0; i < count * (count - 1) / 2; i++)
        distances[i] = random_below(seed, values);
    cr_assert_eq(
        linkage_of((enum linkage_method)random_below(seed, LINKAGE_METHODS), count, distances, merges), 0);
    free(distances);
}

Test(b_score, is_what_the_contingency_tables_say)
{
    uint64_t seed = 1;

    for (int round = 0; round < 600; round++) {
        struct linkage_merge a[MOST], b[MOST];
        double b_k[MOST], mean, reversed, sum = 0;
        size_t count = 3 + random_below(&seed, MOST - 2);

        random_clustering(&seed, count, 2 + random_below(&seed, 2000), a);
        random_clustering(&seed, count, 2 + random_below(&seed, 2000), b);
        cr_assert_eq(b_score(a, b, count, b_k, &mean), 0);
        for (size_t k = 2; k < count; k++) {
            double wanted = direct(a, b, count, k);

            cr_assert_float_eq(b_k[k - 2], wanted, 1e-12, "round %d, k %zu: %g, not %g", round, k, b_k[k - 2],
                               wanted);
            sum += wanted;
        }
        cr_assert_float_eq(mean, sum / (double)(count - 2), 1e-12);
        cr_assert_eq(b_score(b, a, count, NULL, &reversed), 0);
        cr_assert_eq(mean, reversed);
    }
}

Test(b_score, of_a_clustering_with_itself_is_one)
{
    struct linkage_merge a[MOST];
    double b_k[MOST], mean;
    uint64_t seed = 2;

    for (int round = 0; round < 50; round++) {
        size_t count = 3 + random_below(&seed, MOST - 2);

        random_clustering(&seed, count, 1000000, a);
        cr_assert_eq(b_score(a, a, count, b_k, &mean), 0);
        for (size_t k = 2; k < count; k++)
            cr_assert_eq(b_k[k - 2], 1);
        cr_assert_eq(mean, 1);
    }
}

Test(b_score, of_clusterings_without_a_common_pair_is_zero)
{
    const struct linkage_merge a[] = {{0, 1, 1, 2}, {2, 3, 1, 2}, {4, 5, 2, 4}};
    const struct linkage_merge b[] = {{0, 2, 1, 2}, {1, 3, 1, 2}, {4, 5, 2, 4}};
    double b_k[2], mean;

    cr_assert_eq(b_score(a, b, 4, b_k, &mean), 0);
    cr_assert(b_k[0] == 0 && b_k[1] == 0 && mean == 0);
}

Test(b_score, of_few_objects)
{
    const struct linkage_merge two[] = {{0, 1, 1, 2}};
    const struct linkage_merge left[] = {{0, 1, 1, 2}, {2, 3, 2, 3}}, right[] = {{1, 2, 1, 2}, {0, 3, 2, 3}};
    double b_2, mean = -1;

    cr_assert_eq(b_score(NULL, NULL, 0, NULL, &mean), 0);
    cr_assert_eq(mean, 1);
    cr_assert_eq(b_score(NULL, NULL, 1, NULL, &mean), 0);
    cr_assert_eq(mean, 1);
    cr_assert_eq(b_score(two, two, 2, NULL, &mean), 0);
    cr_assert_eq(mean, 1);
    cr_assert_eq(b_score(left, left, 3, &b_2, &mean), 0);
    cr_assert(b_2 == 1 && mean == 1);
    cr_assert_eq(b_score(left, right, 3, &b_2, &mean), 0);
    cr_assert(b_2 == 0 && mean == 0);
    cr_assert_eq(b_score(NULL, NULL, LINKAGE_MAX_COUNT + 1, NULL, &mean), -EOVERFLOW);
}

/* A clustering that takes in one object after the other: the deepest tree there is, in a given order. */
static void make_chain(size_t count, size_t step, struct linkage_merge *merges)
{
    for (size_t i = 0; i + 1 < count; i++) {
        uint32_t object = (uint32_t)((i + 1) * step % count);
        uint32_t cluster = i ? (uint32_t)(count + i - 1) : 0;

        merges[i] = (struct linkage_merge){object < cluster ? object : cluster,
                                           object < cluster ? cluster : object, (double)i, (uint32_t)i + 2};
    }
}

/* A table of count^2 cells would be 40 GB, and a table for each k would not end. */
Test(b_score, of_many_objects_needs_little)
{
    enum { COUNT = 100003 };
    struct linkage_merge *a = malloc(COUNT * sizeof(*a)), *b = malloc(COUNT * sizeof(*b));
    struct rusage before, after;
    double mean;

    make_chain(COUNT, 1, a);
    make_chain(COUNT, 50021, b);
    getrusage(RUSAGE_SELF, &before);
    cr_assert_eq(b_score(a, b, COUNT, NULL, &mean), 0);
    getrusage(RUSAGE_SELF, &after);
    cr_assert(mean > 0.1 && mean < 0.9, "%g", mean);
    cr_assert_lt((size_t)(after.ru_maxrss - before.ru_maxrss) * 1024, COUNT * (size_t)200);
    free(a);
    free(b);
}
