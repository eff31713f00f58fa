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
        {10, 2, 0, {MAIN_KIND, false}, false},
        {11, 2, 0, {MAIN_KIND, false}, false},
        {20, 2, 0, {OTHER_KIND, false}, false},
        {21, 2, 0, {OTHER_KIND, false}, false},
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

/* How many of `count` executions have this pair, and at which of them it comes first. */
static unsigned executions_with(struct go_strategy *strategy, const struct go_choice *pair, unsigned count,
                                unsigned *ret_first)
{
    unsigned found = 0;

    *ret_first = count;
    for (unsigned i = 0; i < count; i++) {
        struct go_schedule schedule = {0};

        go_strategy_choose(strategy, &schedule);
        if (schedule.choice_count != 2 || memcmp(schedule.choices, pair, 2 * sizeof(*pair)) != 0)
            continue;
        if (!found++)
            *ret_first = i;
    }
    return found;
}

Test(go_strategy, a_place_come_to_while_another_is_held_up_makes_a_pair)
{
    static const struct go_choice pair[2] = {{10, 1}, {20, 1}}, late[2] = {{10, 1}, {20, 7}};
    static const struct go_choice wanted[2] = {{10, 1}, {20, GO_HIT_FOLLOWING | 1}};
    static const struct go_choice never[2] = {{10, 1}, {20, GO_HIT_FOLLOWING | 7}};
    CLEANUP(cleanup_strategy) struct go_strategy *strategy = make(11, 2);
    unsigned first, count;

    cr_assert_eq(go_strategy_follows(strategy, &late[0], &late[1]), 0);
    cr_assert_eq(go_strategy_follows(strategy, &pair[0], &pair[1]), 0);
    cr_assert_eq(go_strategy_follows(strategy, &pair[0], &pair[1]), 0, "known");
    count = executions_with(strategy, wanted, 40, &first);
    cr_assert_lt(first, 8);
    cr_assert_geq(count, 2, "what did not happen may the next time");
    cr_assert_leq(count, 4, "but not for ever: %u", count);
    cr_assert_eq(executions_with(strategy, never, 40, &first), 0, "only first hits of a place");
}

Test(go_strategy, pairs_before_operations_that_wait_come_first)
{
    static const struct go_place_use waiting = {20, 2, 0, {OTHER_KIND, false}, true};
    unsigned waiting_first = 0;

    for (uint64_t seed = 0; seed < 16; seed++) {
        static const struct go_choice plain[2] = {{10, 0}, {21, 0}}, waits[2] = {{10, 0}, {20, 0}};
        static const struct go_choice plain_taken[2] = {{10, 0}, {21, GO_HIT_FOLLOWING}};
        static const struct go_choice waits_taken[2] = {{10, 0}, {20, GO_HIT_FOLLOWING}};
        CLEANUP(cleanup_strategy) struct go_strategy *strategy = make(seed, 2);
        CLEANUP(cleanup_strategy) struct go_strategy *same = make(seed, 2);
        unsigned first, second;

        cr_assert_eq(go_strategy_learn(strategy, &waiting), 0);
        cr_assert_eq(go_strategy_learn(same, &waiting), 0);
        cr_assert_eq(go_strategy_follows(strategy, &plain[0], &plain[1]) |
                         go_strategy_follows(strategy, &waits[0], &waits[1]) |
                         go_strategy_follows(same, &plain[0], &plain[1]) |
                         go_strategy_follows(same, &waits[0], &waits[1]),
                     0);
        executions_with(strategy, plain_taken, 40, &first);
        executions_with(same, waits_taken, 40, &second);
        waiting_first += second < first;
    }
    cr_assert_geq(waiting_first, 10, "%u of 16", waiting_first);
}

/* Executions of 10 ms each, and then one whose holds are asked for. */
static struct go_hold_rule holds_after(uint64_t execution_ns, unsigned count, unsigned *ret_long)
{
    CLEANUP(cleanup_strategy) struct go_strategy *strategy = make(3, 3);
    struct go_hold_rule rule = {0}, longest = {0};

    *ret_long = 0;
    for (unsigned i = 0; i < count; i++) {
        struct go_schedule schedule = {0};

        go_strategy_choose(strategy, &schedule);
        go_strategy_holds(strategy, GO_HOLD_LONGEST_NS, &rule);
        cr_assert(i || !rule.outlasts_timers, "nothing has been measured before the first");
        cr_assert_eq(rule.limit_ns > GO_HOLD_SHORT_NS, rule.outlasts_timers);
        cr_assert(schedule.choice_count != 1 || rule.outlasts_timers || !i, "a place alone");
        *ret_long += rule.outlasts_timers;
        if (rule.limit_ns > longest.limit_ns)
            longest = rule;
        /* What a long hold adds is not what the program needs. */
        go_strategy_took(strategy, &rule, rule.outlasts_timers ? 100 * execution_ns : execution_ns);
    }
    return longest;
}

Test(go_strategy, long_holds_outlast_what_an_execution_takes)
{
    unsigned longs;

    cr_assert_eq(holds_after(10000000, 40, &longs).limit_ns, 20000000);
    cr_assert(longs > 15 && longs < 36, "%u of 40", longs);
    cr_assert_eq(holds_after(3000000000, 40, &longs).limit_ns, GO_HOLD_LONGEST_NS);
}

Test(go_strategy, each_first_hit_is_tried_alone)
{
    CLEANUP(cleanup_strategy) struct go_strategy *strategy = make(7, 3);
    bool alone[30][2] = {{false}};
    unsigned count = 0;

    for (unsigned i = 0; i < 2 * 8 + 2; i++) {
        struct go_schedule schedule = {0};

        go_strategy_choose(strategy, &schedule);
        if (i % 2 && schedule.choice_count == 1) {
            cr_assert_lt(schedule.choices[0].hit, 2);
            cr_assert_not(alone[schedule.choices[0].probe][schedule.choices[0].hit], "twice");
            alone[schedule.choices[0].probe][schedule.choices[0].hit] = true;
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
        struct go_schedule schedule = {0};
        unsigned a, b;

        go_strategy_choose(strategy, &schedule);
        if (schedule.choice_count != 2)
            continue;
        pairs++;
        a = schedule.choices[0].probe * 10 + schedule.choices[0].hit;
        b = schedule.choices[1].probe * 10 + schedule.choices[1].hit;
        cr_assert_neq(is_first(schedule.choices[0].probe), is_first(schedule.choices[1].probe));
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
            struct go_schedule first = {0}, second = {0};

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
    const struct go_place_use use = {10, 2, 0, {MAIN_KIND, true}, false};
    CLEANUP(cleanup_strategy) struct go_strategy *strategy = NULL;
    bool both = false;

    cr_assert_eq(go_strategy_new(3, 2, &strategy), 0);
    cr_assert_eq(go_strategy_learn(strategy, &use), 0);
    for (unsigned i = 0; i < 16; i++) {
        struct go_schedule schedule = {0};

        go_strategy_choose(strategy, &schedule);
        both |= schedule.choice_count == 2 && schedule.choices[0].hit != schedule.choices[1].hit;
    }
    cr_assert(both);
}

Test(go_strategy, schedules_are_read_as_they_are_written)
{
    struct go_schedule schedule = {0}, again = {0};
    char text[64];

    cr_assert_eq(go_schedule_parse("311.0,307.1", &schedule), 0);
    cr_assert_eq(schedule.choice_count, 2);
    go_schedule_write(&schedule, text, sizeof(text));
    cr_assert_str_eq(text, "311.0,307.1");
    cr_assert_eq(go_schedule_parse("", &again), -EINVAL);
    cr_assert_eq(go_schedule_parse("1.2;3.4", &again), -EINVAL);
    cr_assert_eq(
        go_schedule_parse("1.1,1.1,1.1,1.1,1.1,1.1,1.1,1.1,1.1,1.1,1.1,1.1,1.1,1.1,1.1,1.1,1.1", &again),
        -E2BIG);
}
