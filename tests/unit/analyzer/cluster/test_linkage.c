/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/cluster/linkage.h"
#include "analyzer/cluster/linkage_space.h"
#include "base/cleanup.h"
#include "tests/unit/analyzer/streams.h"

enum { MOST = 60, MOST_PAIRS = MOST * (MOST - 1) / 2 };

/* ------------------------------------------------------------------------------------------ SciPy's answers
 */

static void expect_golden_rows(FILE *golden, const char *name, size_t count, const double *distances)
{
    double copy[MOST_PAIRS];
    struct linkage_merge merges[MOST];
    enum linkage_method method;
    char word[32];

    cr_assert_eq(fscanf(golden, "%31s", word), 1);
    cr_assert_eq(linkage_parse(word, &method), 0, "%s", word);
    memcpy(copy, distances, count * (count - 1) / 2 * sizeof(*copy));
    cr_assert_eq(linkage_of(method, count, copy, merges), 0);
    for (size_t i = 0; i + 1 < count; i++) {
        struct linkage_merge wanted;

        cr_assert_eq(fscanf(golden, "%u %u %lf %u", &wanted.a, &wanted.b, &wanted.distance, &wanted.size), 4);
        cr_assert(merges[i].a == wanted.a && merges[i].b == wanted.b && merges[i].size == wanted.size &&
                      fabs(merges[i].distance - wanted.distance) <= 1e-12,
                  "%s, %s, row %zu: %u %u %.17g %u instead of %u %u %.17g %u", name, word, i, merges[i].a,
                  merges[i].b, merges[i].distance, merges[i].size, wanted.a, wanted.b, wanted.distance,
                  wanted.size);
    }
}

Test(linkage, is_scipys_row_for_row)
{
    AUTO_FCLOSE FILE *golden = fopen("tests/golden/linkage.txt", "r"); /* tests run in the root of the tree */
    size_t matrices = 0, count;
    double scale, distances[MOST_PAIRS];
    char name[64];

    cr_assert_not_null(golden);
    cr_assert_eq(fscanf(golden, "#%*[^\n]"), 0);
    for (; fscanf(golden, "%63s %zu %lf", name, &count, &scale) == 3; matrices++) {
        cr_assert_leq(count, (size_t)MOST);
        for (size_t i = 0; i < count * (count - 1) / 2; i++) {
            cr_assert_eq(fscanf(golden, "%lf", &distances[i]), 1);
            distances[i] /= scale;
        }
        for (int method = 0; method < LINKAGE_METHODS; method++)
            expect_golden_rows(golden, name, count, distances);
    }
    cr_assert(feof(golden));
    cr_assert_gt(matrices, 15u);
}

/* ------------------------------------------------------------------------------------------ the definition
 */

struct naive {
    size_t count;
    double apart[MOST][MOST];
    uint32_t ids[MOST], sizes[MOST];
    bool gone[MOST];
};

static double naive_distance(enum linkage_method method, double nx, double ny, double nz, double x, double y,
                             double xy)
{
    double n = nx + ny;

    switch (method) {
    case LINKAGE_SINGLE:
        return fmin(x, y);
    case LINKAGE_COMPLETE:
        return fmax(x, y);
    case LINKAGE_AVERAGE:
        return nx / n * x + ny / n * y;
    case LINKAGE_WEIGHTED:
        return x / 2 + y / 2;
    case LINKAGE_CENTROID:
        return sqrt(nx / n * x * x + ny / n * y * y - nx * ny / (n * n) * xy * xy);
    case LINKAGE_MEDIAN:
        return sqrt(x * x / 2 + y * y / 2 - xy * xy / 4);
    default:
        return sqrt(((nx + nz) * x * x + (ny + nz) * y * y - nz * xy * xy) / (n + nz));
    }
}

/* The nearest two of all, over and over: Lance and Williams. */
static struct linkage_merge naive_merge(struct naive *naive, enum linkage_method method, uint32_t new_id)
{
    struct linkage_merge merge = {.distance = INFINITY};
    size_t x = 0, y = 0;

    for (size_t i = 0; i < naive->count; i++)
        for (size_t j = i + 1; j < naive->count; j++)
            if (!naive->gone[i] && !naive->gone[j] && naive->apart[i][j] < merge.distance) {
                merge.distance = naive->apart[i][j];
                x = i;
                y = j;
            }
    for (size_t z = 0; z < naive->count; z++)
        if (!naive->gone[z] && z != x && z != y)
            naive->apart[z][y] = naive->apart[y][z] =
                naive_distance(method, naive->sizes[x], naive->sizes[y], naive->sizes[z], naive->apart[z][x],
                               naive->apart[z][y], merge.distance);
    merge.a = naive->ids[x] < naive->ids[y] ? naive->ids[x] : naive->ids[y];
    merge.b = naive->ids[x] < naive->ids[y] ? naive->ids[y] : naive->ids[x];
    merge.size = naive->sizes[y] += naive->sizes[x];
    naive->ids[y] = new_id;
    naive->gone[x] = true;
    return merge;
}

static void expect_definition(enum linkage_method method, size_t count, uint64_t *seed)
{
    struct naive *naive = calloc(1, sizeof(*naive));
    double distances[MOST_PAIRS];
    struct linkage_merge merges[MOST];
    size_t pair = 0;

    naive->count = count;
    for (size_t i = 0; i < count; i++) {
        naive->ids[i] = (uint32_t)i;
        naive->sizes[i] = 1;
        for (size_t j = i + 1; j < count; j++)
            naive->apart[i][j] = naive->apart[j][i] = distances[pair++] =
                random_below(seed, 1u << 30) + random_below(seed, 1u << 30) / (double)(1u << 30);
    }
    cr_assert_eq(linkage_of(method, count, distances, merges), 0);
    for (size_t i = 0; i + 1 < count; i++) {
        struct linkage_merge wanted = naive_merge(naive, method, (uint32_t)(count + i));

        cr_assert(merges[i].a == wanted.a && merges[i].b == wanted.b && merges[i].size == wanted.size &&
                      fabs(merges[i].distance / wanted.distance - 1) < 1e-9,
                  "%s of %zu, row %zu", linkage_name(method), count, i);
    }
    free(naive);
}

Test(linkage, merges_the_nearest_two_each_time)
{
    uint64_t seed = 1;

    for (int method = 0; method < LINKAGE_METHODS; method++)
        for (int round = 0; round < 100; round++)
            expect_definition((enum linkage_method)method, 2 + random_below(&seed, MOST - 1), &seed);
}

/* ------------------------------------------------------------------------------------------ edges */

Test(linkage, needs_two_objects_for_a_row)
{
    struct linkage_merge merge = {.size = 77};
    double distance = 0.5;

    for (int method = 0; method < LINKAGE_METHODS; method++) {
        cr_assert_eq(linkage_of((enum linkage_method)method, 0, NULL, NULL), 0);
        cr_assert_eq(linkage_of((enum linkage_method)method, 1, NULL, NULL), 0);
        cr_assert_eq(linkage_of((enum linkage_method)method, 2, &distance, &merge), 0);
        cr_assert(merge.a == 0 && merge.b == 1 && merge.distance == 0.5 && merge.size == 2);
    }
}

Test(linkage, refuses_what_is_no_distance)
{
    const double wrong[] = {-1, NAN, INFINITY, -INFINITY, 1e141};
    struct linkage_merge merges[2];

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        for (int method = 0; method < LINKAGE_METHODS; method++) {
            double distances[] = {0, 1, wrong[i]};

            cr_assert_eq(linkage_of((enum linkage_method)method, 3, distances, merges), -EINVAL, "%g",
                         wrong[i]);
        }
    cr_assert_eq(linkage_of(LINKAGE_WARD, LINKAGE_MAX_COUNT + 1, NULL, NULL), -EOVERFLOW);
}

Test(linkage, takes_the_largest_distances)
{
    for (int method = 0; method < LINKAGE_METHODS; method++) {
        double distances[MOST_PAIRS];
        struct linkage_merge merges[MOST];

        for (size_t i = 0; i < MOST_PAIRS; i++)
            distances[i] = LINKAGE_MAX_DISTANCE;
        cr_assert_eq(linkage_of((enum linkage_method)method, MOST, distances, merges), 0);
        cr_assert(isfinite(merges[MOST - 2].distance));
        cr_assert_eq(merges[MOST - 2].size, (unsigned)MOST);
    }
}

Test(linkage, knows_its_methods_by_name)
{
    enum linkage_method method;

    for (int i = 0; i < LINKAGE_METHODS; i++) {
        cr_assert_eq(linkage_parse(linkage_name((enum linkage_method)i), &method), 0);
        cr_assert_eq((int)method, i);
    }
    cr_assert_eq(linkage_parse("war", &method), -EINVAL);
    cr_assert_eq(linkage_parse("", &method), -EINVAL);
}

/* What rounding can do to the other methods by a hair, centroid linkage does all the time: a merge brings a
 * third cluster nearer, which may lie deeper in the chain. Each row must merge two clusters that are still
 * there. */
Test(linkage, chains_survive_merges_that_bring_others_nearer)
{
    uint64_t seed = 3;

    for (int round = 0; round < 300; round++) {
        CLEANUP(linkage_space_release) struct linkage_space space;
        double distances[MOST_PAIRS];
        struct linkage_merge merges[MOST];
        bool gone[MOST] = {false};

        for (size_t i = 0; i < MOST_PAIRS; i++)
            distances[i] = 1000 + random_below(&seed, 300);
        cr_assert_eq(linkage_space_init(&space, MOST, distances), 0);
        cr_assert_eq(linkage_by_chain(LINKAGE_CENTROID, &space, merges), 0);
        for (size_t i = 0; i + 1 < MOST; i++) {
            cr_assert(merges[i].a < merges[i].b && merges[i].b < MOST);
            cr_assert(!gone[merges[i].a] && !gone[merges[i].b], "round %d, row %zu", round, i);
            gone[merges[i].a] = true;
        }
    }
}

/* ------------------------------------------------------------------------------------------ cuts */

static void expect_cut(const struct linkage_merge *merges, size_t count, size_t clusters,
                       const uint32_t *wanted)
{
    uint32_t labels[8];

    cr_assert_eq(linkage_cut(merges, count, clusters, labels), 0);
    cr_assert_arr_eq(labels, wanted, count * sizeof(*labels), "%zu clusters", clusters);
}

Test(linkage, cuts_undo_the_last_rows)
{
    /* The third row is nearer than the second, as centroid linkage has it, and the last two are equal. */
    const struct linkage_merge merges[] = {{3, 4, 0.1, 2}, {0, 2, 0.5, 2}, {1, 6, 0.4, 3}, {5, 7, 0.4, 5}};
    uint32_t labels[5];

    expect_cut(merges, 5, 1, (uint32_t[]){0, 0, 0, 0, 0});
    expect_cut(merges, 5, 2, (uint32_t[]){0, 0, 0, 1, 1});
    expect_cut(merges, 5, 3, (uint32_t[]){0, 1, 0, 2, 2});
    expect_cut(merges, 5, 4, (uint32_t[]){0, 1, 2, 3, 3});
    expect_cut(merges, 5, 5, (uint32_t[]){0, 1, 2, 3, 4});
    expect_cut(NULL, 1, 1, (uint32_t[]){0});
    cr_assert_eq(linkage_cut(merges, 5, 0, labels), -EINVAL);
    cr_assert_eq(linkage_cut(merges, 5, 6, labels), -EINVAL);
    cr_assert_eq(linkage_cut(NULL, 0, 0, labels), -EINVAL);
}
