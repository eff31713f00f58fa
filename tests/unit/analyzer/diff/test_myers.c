/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "analyzer/diff/myers.h"
#include "tests/unit/analyzer/streams.h"
#include "tests/unit/repeats.h"

enum { MOST = 60 };

/* The textbook table. */
static size_t longest_common(const uint32_t *a, size_t n, const uint32_t *b, size_t m)
{
    size_t table[MOST + 1][MOST + 1] = {{0}};

    for (size_t i = 1; i <= n; i++)
        for (size_t j = 1; j <= m; j++)
            table[i][j] = a[i - 1] == b[j - 1]                ? table[i - 1][j - 1] + 1
                          : table[i - 1][j] > table[i][j - 1] ? table[i - 1][j]
                                                              : table[i][j - 1];
    return table[n][m];
}

/* Applying the script to a gives b: what is common on both sides is equal, in order. Returns its length. */
static size_t expect_script(const uint32_t *a, size_t n, const uint32_t *b, size_t m, const bool *a_only,
                            const bool *b_only)
{
    size_t i = 0, j = 0, common = 0;

    for (;;) {
        while (i < n && a_only[i])
            i++;
        while (j < m && b_only[j])
            j++;
        if (i == n || j == m)
            break;
        cr_assert_eq(a[i++], b[j++]);
        common++;
    }
    cr_assert_eq(i, n);
    cr_assert_eq(j, m);
    return common;
}

Test(myers, finds_the_shortest_script)
{
    uint32_t a[MOST], b[MOST];
    bool a_only[MOST], b_only[MOST];

    for (uint64_t round = 0; round < REPEATS(20000); round++) {
        uint64_t seed = round;
        uint32_t symbols = 1 + random_below(&seed, 12);
        size_t n = random_below(&seed, MOST + 1), m = random_below(&seed, MOST + 1);

        for (size_t i = 0; i < n; i++)
            a[i] = random_below(&seed, symbols);
        for (size_t i = 0; i < m; i++) /* half of the time an edited copy */
            b[i] = round % 2 && i < n && random_below(&seed, 8) ? a[i] : random_below(&seed, symbols + 3);
        cr_assert_eq(myers_diff(a, n, b, m, a_only, b_only), 0);
        cr_assert_eq(expect_script(a, n, b, m, a_only, b_only), longest_common(a, n, b, m), "round %lu",
                     (unsigned long)round);
    }
}

static void expect_large(const uint32_t *a, const uint32_t *b, size_t count, size_t least_common)
{
    bool *a_only = malloc(count), *b_only = malloc(count);
    struct rusage before, after;

    getrusage(RUSAGE_SELF, &before);
    cr_assert_eq(myers_diff(a, count, b, count, a_only, b_only), 0);
    getrusage(RUSAGE_SELF, &after);
    cr_assert_geq(expect_script(a, count, b, count, a_only, b_only), least_common);
    /* 100 bytes an element are plenty for linear space, and nothing for a table of count^2. */
    cr_assert_lt((size_t)(after.ru_maxrss - before.ru_maxrss) * 1024, count * 2 * 100 + (8u << 20));
    free(a_only);
    free(b_only);
}

/* Nothing in common: found without any search. */
Test(myers, a_hundred_thousand_strangers, .timeout = 20)
{
    size_t count = 100000;
    uint32_t *a = malloc(count * sizeof(*a)), *b = malloc(count * sizeof(*b));

    for (size_t i = 0; i < count; i++) {
        a[i] = (uint32_t)i;
        b[i] = (uint32_t)(count + i);
    }
    expect_large(a, b, count, 0);
    free(a);
    free(b);
}

/* A few edits in many elements, and a large difference of few symbols. */
Test(myers, a_hundred_thousand_relatives, .timeout = 60)
{
    size_t count = 100000;
    uint32_t *a = malloc(count * sizeof(*a)), *b = malloc(count * sizeof(*b));
    uint64_t seed = 3;

    for (size_t i = 0; i < count; i++) {
        a[i] = (uint32_t)random_below(&seed, 1000);
        b[i] = random_below(&seed, 100) ? a[i] : 1001;
    }
    expect_large(a, b, count, 98000);
    for (size_t i = 0; i < count; i++) {
        a[i] = random_below(&seed, 3);
        b[i] = random_below(&seed, 3);
    }
    expect_large(a, b, count, 68000); /* random ternary sequences have about 0.717 in common */
    free(a);
    free(b);
}
