/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>

#include "base/clock.h"
#include "collector/budget/crowding.h"

Test(crowding, nothing_is_known_at_first)
{
    struct crowding crowding = {0};

    crowding_take(&crowding, "cpu  100 0 0 100 0 0 0 0 0 0\ncpu0 100 0 0 100 0 0 0 0 0 0\nintr 1\n");
    cr_assert_eq(crowding.part, 0);
}

Test(crowding, one_processor)
{
    struct crowding crowding = {0};

    crowding_take(&crowding, "cpu  100 0 0 100 0 0 0 0 0 0\ncpu0 100 0 0 100 0 0 0 0 0 0\nintr 1\n");
    crowding_take(&crowding, "cpu  150 5 20 120 5 0 0 0 0 0\ncpu0 150 5 20 120 5 0 0 0 0 0\nintr 1\n");
    cr_assert_float_eq(crowding.part, 0.75, 1e-9);
}

Test(crowding, all_have_to_be_busy)
{
    struct crowding crowding = {0};

    crowding_take(&crowding, "cpu  0 0 0 1 0 0 0 0 0 0\ncpu0 0\ncpu1 0\nintr 1\n");
    crowding_take(&crowding, "cpu  20 10 10 11 0 20 10 20 7 7\ncpu0 0\ncpu1 0\nintr 1\n");
    cr_assert_eq(crowding.processors, 2);
    cr_assert_float_eq(crowding.part, 0.9 * 0.9, 1e-9);
}

Test(crowding, a_clock_that_stands_still_or_goes_back_says_nothing)
{
    struct crowding crowding = {0};

    crowding_take(&crowding, "cpu  100 0 0 100 0 0 0 0 0 0\ncpu0 0\nintr 1\n");
    crowding_take(&crowding, "cpu  150 0 0 150 0 0 0 0 0 0\ncpu0 0\nintr 1\n");
    crowding_take(&crowding, "cpu  150 0 0 150 0 0 0 0 0 0\ncpu0 0\nintr 1\n");
    cr_assert_float_eq(crowding.part, 0.5, 1e-9);
    crowding_take(&crowding, "cpu  140 0 0 170 0 0 0 0 0 0\ncpu0 0\nintr 1\n");
    cr_assert_float_eq(crowding.part, 0.5, 1e-9);
    crowding_take(&crowding, "cpu  150 0 0 170 0 0 0 0 0 0\ncpu0 0\nintr 1\n");
    cr_assert_float_eq(crowding.part, 1, 1e-9);
}

Test(crowding, other_text_is_passed_over)
{
    struct crowding crowding = {.part = 0.5};

    crowding_take(&crowding, "");
    crowding_take(&crowding, "cpu  x");
    crowding_take(&crowding, "cpu  1 2 3\n");
    cr_assert_eq(crowding.part, 0.5);
    cr_assert_eq(crowding.all, 0);
}

Test(crowding, this_machine)
{
    struct crowding crowding = {0};

    crowding_look(&crowding, clock_ns(CLOCK_MONOTONIC));
    cr_assert_gt(crowding.all, 0);
    cr_assert_geq(crowding.processors, 1);
}
