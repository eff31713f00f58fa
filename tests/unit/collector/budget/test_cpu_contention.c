/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>

#include "base/clock.h"
#include "collector/budget/cpu_contention.h"

Test(cpu_contention, nothing_is_known_at_first)
{
    struct cpu_contention contention = {0};

    cpu_contention_parse(&contention, "cpu  100 0 0 100 0 0 0 0 0 0\ncpu0 100 0 0 100 0 0 0 0 0 0\nintr 1\n");
    cr_assert_eq(contention.part, 0);
}

Test(cpu_contention, one_processor)
{
    struct cpu_contention contention = {0};

    cpu_contention_parse(&contention, "cpu  100 0 0 100 0 0 0 0 0 0\ncpu0 100 0 0 100 0 0 0 0 0 0\nintr 1\n");
    cpu_contention_parse(&contention,
                         "cpu  150 5 20 120 5 0 0 0 0 0\ncpu0 150 5 20 120 5 0 0 0 0 0\nintr 1\n");
    cr_assert_float_eq(contention.part, 0.75, 1e-9);
}

Test(cpu_contention, all_have_to_be_busy)
{
    struct cpu_contention contention = {0};

    cpu_contention_parse(&contention, "cpu  0 0 0 1 0 0 0 0 0 0\ncpu0 0\ncpu1 0\nintr 1\n");
    cpu_contention_parse(&contention, "cpu  20 10 10 11 0 20 10 20 7 7\ncpu0 0\ncpu1 0\nintr 1\n");
    cr_assert_eq(contention.processors, 2);
    cr_assert_float_eq(contention.part, 0.9 * 0.9, 1e-9);
}

Test(cpu_contention, a_clock_that_stands_still_or_goes_back_says_nothing)
{
    struct cpu_contention contention = {0};

    cpu_contention_parse(&contention, "cpu  100 0 0 100 0 0 0 0 0 0\ncpu0 0\nintr 1\n");
    cpu_contention_parse(&contention, "cpu  150 0 0 150 0 0 0 0 0 0\ncpu0 0\nintr 1\n");
    cpu_contention_parse(&contention, "cpu  150 0 0 150 0 0 0 0 0 0\ncpu0 0\nintr 1\n");
    cr_assert_float_eq(contention.part, 0.5, 1e-9);
    cpu_contention_parse(&contention, "cpu  140 0 0 170 0 0 0 0 0 0\ncpu0 0\nintr 1\n");
    cr_assert_float_eq(contention.part, 0.5, 1e-9);
    cpu_contention_parse(&contention, "cpu  150 0 0 170 0 0 0 0 0 0\ncpu0 0\nintr 1\n");
    cr_assert_float_eq(contention.part, 1, 1e-9);
}

Test(cpu_contention, other_text_is_passed_over)
{
    struct cpu_contention contention = {.part = 0.5};

    cpu_contention_parse(&contention, "");
    cpu_contention_parse(&contention, "cpu  x");
    cpu_contention_parse(&contention, "cpu  1 2 3\n");
    cr_assert_eq(contention.part, 0.5);
    cr_assert_eq(contention.all, 0);
}

Test(cpu_contention, this_machine)
{
    struct cpu_contention contention = {0};

    cpu_contention_sample(&contention, clock_ns(CLOCK_MONOTONIC));
    cr_assert_gt(contention.all, 0);
    cr_assert_geq(contention.processors, 1);
}
