/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a recording with a budget says to the next one of the same binary. */
#include <criterion/criterion.h>

#include "collector/budget/budget_state.h"

static struct budget_function function;
static struct probe_unit unit;
static const struct budget budget = {
    .accounts.functions = &function, .accounts.units = &unit, .accounts.function_count = 1};

/* It was called 5,000 times a second. */
static void describe(void)
{
    function = (struct budget_function){.probed = true, .recent_calls = 2500, .recent_span_ns = 0.5e9};
    unit = (struct probe_unit){.excluded = false};
}

TestSuite(budget_plan, .init = describe);

Test(budget_plan, one_that_is_out_begins_outside)
{
    function.state = FUNCTION_EXCLUDED;
    unit.excluded = true;
    cr_assert_float_eq(budget_planned(&budget, 0), 5000, 0.1);
}

Test(budget_plan, one_that_is_out_and_was_never_seen_in_begins_outside)
{
    function.state = FUNCTION_EXCLUDED;
    function.recent_calls = 0;
    cr_assert_gt(budget_planned(&budget, 0), 0);
}

Test(budget_plan, one_that_could_stay_begins_inside)
{
    function.recorded = 100;
    unit.expected = 0.2;
    cr_assert_eq(budget_planned(&budget, 0), 0);
}

/* The recording ends while it is tried anew: it has been found too hot, and nothing else yet. */
Test(budget_plan, one_on_trial_begins_outside)
{
    function.recorded = 100;
    unit.trial = true;
    unit.expected = 0.2;
    cr_assert_float_eq(budget_planned(&budget, 0), 5000, 0.1);
    function.state = FUNCTION_THROTTLED;
    cr_assert_float_eq(budget_planned(&budget, 0), 5000, 0.1);
}

Test(budget_plan, one_that_came_for_the_first_time_begins_inside)
{
    function.recorded = 100;
    unit.trial = true;
    cr_assert_eq(budget_planned(&budget, 0), 0);
}

Test(budget_plan, nothing_new_is_said_of_who_was_not_seen)
{
    cr_assert_lt(budget_planned(&budget, 0), 0);
    function.recorded = 100;
    unit.waits = true;
    cr_assert_lt(budget_planned(&budget, 0), 0);
    unit.waits = false;
    unit.page_excluded = true;
    cr_assert_lt(budget_planned(&budget, 0), 0);
    unit.page_excluded = false;
    function.inlined = true; /* inline probes cost little: that says nothing about uprobes */
    cr_assert_lt(budget_planned(&budget, 0), 0);
    function.inlined = false;
    function.probed = false;
    cr_assert_lt(budget_planned(&budget, 0), 0);
}
