/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "collector/go/strategy.h"

#define MAIN_KIND 1u
#define OTHER_KIND 2u

DEFINE_CLEANUP(cleanup_strategy, struct go_strategy *, go_strategy_free)

/* Two goroutines: places 10 and 11 are the first one's, 20 and 21 the second one's, each hit twice. */
static struct go_strategy *make(uint64_t seed, unsigned delays)
{
    static const struct go_place_use uses[] = {
        {10, 2, 0, {MAIN_KIND, false}},
        {11, 2, 0, {MAIN_KIND, false}},
        {20, 2, 0, {OTHER_KIND, false}},
        {21, 2, 0, {OTHER_KIND, false}},
    };
    struct go_strategy *strategy;

    cr_assert_eq(go_strategy_new(seed, delays, &strategy), 0);
    for (size_t i = 0; i < sizeof(uses) / sizeof(*uses); i++)
        cr_assert_eq(go_strategy_learn(strategy, &uses[i]), 0);
    return strategy;
}

static bool is_first(uint32_t probe)
{
    return probe < 20;
}

Test(go_strategy, each_first_hit_is_tried_alone)
{
    CLEANUP(cleanup_strategy) struct go_strategy *strategy = make(7, 3);
    bool alone[30][2] = {{false}};
    unsigned count = 0;

    for (unsigned i = 0; i < 2 * 8 + 2; i++) {
        struct go_conduct conduct = {0};

        go_strategy_choose(strategy, &conduct);
        if (i % 2 && conduct.choice_count == 1) {
            cr_assert_lt(conduct.choices[0].hit, 2);
            cr_assert_not(alone[conduct.choices[0].probe][conduct.choices[0].hit], "twice");
            alone[conduct.choices[0].probe][conduct.choices[0].hit] = true;
            count++;
        }
    }
    cr_assert_geq(count, 6); /* every eighth is at random instead */
}

Test(go_strategy, pairs_of_different_goroutines_come_first_and_once)
{
    CLEANUP(cleanup_strategy) struct go_strategy *strategy = make(9, 2);
    char seen[64][16];
    unsigned count = 0, pairs = 0;

    /* 16 pairs of different goroutines there are. */
    for (unsigned i = 0; i < 64 && pairs < 12; i++) {
        struct go_conduct conduct = {0};
        unsigned a, b;

        go_strategy_choose(strategy, &conduct);
        if (conduct.choice_count != 2)
            continue;
        pairs++;
        a = conduct.choices[0].probe * 10 + conduct.choices[0].hit;
        b = conduct.choices[1].probe * 10 + conduct.choices[1].hit;
        cr_assert_neq(is_first(conduct.choices[0].probe), is_first(conduct.choices[1].probe));
        snprintf(seen[count], sizeof(seen[count]), "%u-%u", a < b ? a : b, a < b ? b : a);
        for (unsigned k = 0; k < count; k++)
            cr_assert_str_neq(seen[k], seen[count]);
        count++;
    }
    cr_assert_eq(pairs, 12);
}

Test(go_strategy, the_seed_decides_and_the_bound_is_kept)
{
    for (unsigned delays = 0; delays <= 3; delays++) {
        CLEANUP(cleanup_strategy) struct go_strategy *one = make(5, delays);
        CLEANUP(cleanup_strategy) struct go_strategy *other = make(5, delays);

        for (unsigned i = 0; i < 200; i++) {
            struct go_conduct first = {0}, second = {0};

            go_strategy_choose(one, &first);
            go_strategy_choose(other, &second);
            cr_assert_eq(memcmp(&first, &second, sizeof(first)), 0);
            cr_assert_leq(first.choice_count, delays);
            cr_assert_eq(first.left, (int32_t)delays);
        }
    }
}

Test(go_strategy, goroutines_that_are_many_can_be_held_at_one_place_twice)
{
    const struct go_place_use use = {10, 2, 0, {MAIN_KIND, true}};
    CLEANUP(cleanup_strategy) struct go_strategy *strategy = NULL;
    bool both = false;

    cr_assert_eq(go_strategy_new(3, 2, &strategy), 0);
    cr_assert_eq(go_strategy_learn(strategy, &use), 0);
    for (unsigned i = 0; i < 16; i++) {
        struct go_conduct conduct = {0};

        go_strategy_choose(strategy, &conduct);
        both |= conduct.choice_count == 2 && conduct.choices[0].hit != conduct.choices[1].hit;
    }
    cr_assert(both);
}

Test(go_strategy, schedules_are_read_as_they_are_written)
{
    struct go_conduct conduct = {0}, again = {0};
    char text[64];

    cr_assert_eq(go_schedule_parse("311.0,307.1", &conduct), 0);
    cr_assert_eq(conduct.choice_count, 2);
    go_schedule_write(&conduct, text, sizeof(text));
    cr_assert_str_eq(text, "311.0,307.1");
    cr_assert_eq(go_schedule_parse("", &again), -EINVAL);
    cr_assert_eq(go_schedule_parse("1.2;3.4", &again), -EINVAL);
    cr_assert_eq(
        go_schedule_parse("1.1,1.1,1.1,1.1,1.1,1.1,1.1,1.1,1.1,1.1,1.1,1.1,1.1,1.1,1.1,1.1,1.1", &again),
        -E2BIG);
}
