/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Percentiles of exact durations and of ranges, against sorting; times as text. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "analyzer/times/durations.h"
#include "analyzer/times/time_text.h"
#include "base/array.h"
#include "tests/unit/analyzer/streams.h"

enum { MOST = 300 };

static int compare(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

    return (left > right) - (left < right);
}

static uint64_t naive(uint64_t *sorted, size_t count, double percent)
{
    double at = percent / 100 * (double)(count - 1), below = floor(at);
    uint64_t low = sorted[(size_t)below], high = at > below ? sorted[(size_t)below + 1] : low;

    return low + (uint64_t)llround((double)(high - low) * (at - below));
}

/* Of very different sizes, some longer than 32 bits hold, some equal. */
static uint64_t random_ns(uint64_t *seed)
{
    return (uint64_t)random_below(seed, 1000) << random_below(seed, 36);
}

static void check(struct durations *durations, uint64_t *least, uint64_t *most, size_t count)
{
    static const double percents[] = {0, 1, 50, 90, 99, 99.9, 100};

    qsort(least, count, sizeof(*least), compare);
    qsort(most, count, sizeof(*most), compare);
    for (size_t i = 0; i < ARRAY_SIZE(percents); i++) {
        struct time_range range = durations_percentile(durations, percents[i]);

        cr_assert_eq(range.min_ns, naive(least, count, percents[i]), "%g %% of %zu", percents[i], count);
        cr_assert_eq(range.max_ns, naive(most, count, percents[i]), "%g %% of %zu", percents[i], count);
    }
}

/* `ranges`: in a hundred. */
static void compare_with_sorting(uint64_t seed, unsigned ranges)
{
    uint64_t least[MOST], most[MOST];
    size_t count = 1 + random_below(&seed, MOST), exact = 0;
    struct durations durations = {0};

    for (size_t i = 0; i < count; i++) {
        least[i] = most[i] = random_ns(&seed);
        if (random_below(&seed, 100) < ranges)
            most[i] += 1 + random_ns(&seed);
        exact += least[i] == most[i];
        cr_assert_eq(durations_add(&durations, (struct time_range){least[i], most[i]}), 0);
    }
    cr_assert_eq(durations.count, count);
    cr_assert_eq(durations.exact, exact);
    check(&durations, least, most, count);
    durations_release(&durations);
}

Test(durations, percentiles_are_those_of_sorting)
{
    for (uint64_t seed = 1; seed < 200; seed++)
        compare_with_sorting(seed * 7919, seed % 3 ? 0 : 20);
}

Test(durations, ranges_without_a_limit)
{
    struct durations durations = {0};
    struct time_range range;

    cr_assert_eq(durations_percentile(&durations, 50).max_ns, 0);
    for (uint64_t ns = 1; ns <= 3; ns++)
        cr_assert_eq(durations_add(&durations, (struct time_range){ns, UINT64_MAX}), 0);
    cr_assert_eq(durations_add(&durations, (struct time_range){9, 9}), 0);
    range = durations_percentile(&durations, 50);
    cr_assert_eq(range.min_ns, 3); /* between 2 and 3, rounded */
    cr_assert_eq(range.max_ns, UINT64_MAX);
    cr_assert_eq(durations_percentile(&durations, 0).max_ns, 9);
    durations_release(&durations);
}

Test(durations, octaves_have_what_lies_within_one)
{
    static const struct time_range ranges[] = {{0, 0}, {1, 1}, {5, 5}, {4, 7}, {7, 8}, {1u << 20, 1u << 20}};
    struct durations durations = {0};
    size_t sum = 0;

    for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
        cr_assert_eq(durations_add(&durations, ranges[i]), 0);
    for (size_t i = 0; i < DURATION_OCTAVES; i++)
        sum += durations.octaves[i];
    cr_assert_eq(durations.octaves[0], 2);
    cr_assert_eq(durations.octaves[2], 2);
    cr_assert_eq(durations.octaves[20], 1);
    cr_assert_eq(sum, 5);
    durations_release(&durations);
}

Test(durations, texts)
{
    static const struct {
        struct time_range range;
        const char *text;
    } cases[] = {
        {{0, 0}, "0 ns"},
        {{999, 999}, "999 ns"},
        {{1500, 1500}, "1.500 us"},
        {{12345678, 12345678}, "12.35 ms"},
        {{123456789, 123456789}, "123.5 ms"},
        {{75000000000, 75000000000}, "75.00 s"},
        {{0, 1500}, "0 to 1.500 us"},
        {{10, 20}, "10 to 20 ns"},
        {{10, 2000}, "10 ns to 2.000 us"},
        {{10, UINT64_MAX}, "over 10 ns"},
        {{0, UINT64_MAX}, "?"},
    };
    char text[TIME_TEXT_SIZE];

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        time_range_text(cases[i].range, text);
        cr_assert_str_eq(text, cases[i].text);
    }
}
