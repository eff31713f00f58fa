/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which functions a process that has just got its inline probes shows to be called too often. */
#include <criterion/criterion.h>
#include <string.h>

#include "collector/budget/budget_state.h"

#define FUNCTIONS 6u
#define RAN_NS 10e6

static struct budget_function functions[FUNCTIONS];
static struct probe_unit units[FUNCTIONS];
static uint32_t calls[FUNCTIONS];
static struct budget budget;
static const struct budget_exposure contact = {.elapsed = 2 * RAN_NS, .ran = RAN_NS};

/* With 10 % of 10 ms there is room for about 47,000 calls of 10 ns; 33,000 when some go. (The other half of
 * the budget is for the work on the processes.) */
static void describe(void)
{
    memset(units, 0, sizeof(units));
    memset(calls, 0, sizeof(calls));
    budget = (struct budget){.options.share = 0.1,
                             .accounts.costs = {.inline_ns = 10, .read_ns = 10},
                             .accounts.functions = functions,
                             .accounts.units = units,
                             .accounts.inline_new = calls,
                             .accounts.function_count = FUNCTIONS};
    for (uint32_t i = 0; i < FUNCTIONS; i++)
        functions[i] = (struct budget_function){.probed = true, .inlined = true, .unit = i};
}

TestSuite(inline_ramp_up, .init = describe);

Test(inline_ramp_up, what_fits_stays)
{
    calls[0] = 30000;
    calls[1] = 10000;
    cr_assert_eq(budget_choose_inline(&budget, &contact), 0);
    cr_assert(!units[0].excluded && !units[1].excluded);
}

Test(inline_ramp_up, the_hottest_go_and_the_rest_fits)
{
    calls[0] = 1000;
    calls[1] = 60000;
    calls[2] = 40000;
    calls[3] = 12000;
    cr_assert_eq(budget_choose_inline(&budget, &contact), 2);
    cr_assert(units[1].excluded && units[2].excluded);
    cr_assert(!units[0].excluded && !units[3].excluded);
}

Test(inline_ramp_up, what_they_took_is_kept)
{
    calls[1] = 100000;
    cr_assert_eq(budget_choose_inline(&budget, &contact), 1);
    cr_assert_float_eq(units[1].expected, 100000 * 10 / contact.elapsed, 1e-9);
    cr_assert_float_eq(budget_calls_per_second(&functions[1]), 100000 / contact.elapsed * 1e9, 1);
}

Test(inline_ramp_up, lost_calls_count_as_those_that_were_recorded)
{
    calls[0] = 20000;
    calls[1] = 1000;
    cr_assert_eq(budget_choose_inline(&budget, &contact), 0);
    budget.accounts.inline_lost = 42000;
    cr_assert_eq(budget_choose_inline(&budget, &contact), 1);
    cr_assert(units[0].excluded && !units[1].excluded);
}

Test(inline_ramp_up, reading_counts_where_no_processor_is_idle)
{
    calls[0] = 30000;
    budget.accounts.contention.part = 1;
    cr_assert_eq(budget_choose_inline(&budget, &contact), 1);
    cr_assert(units[0].excluded);
}

Test(inline_ramp_up, who_has_not_run_shows_nothing)
{
    const struct budget_exposure idle = {.elapsed = 20e6};

    cr_assert_eq(budget_choose_inline(&budget, &idle), 0);
}

Test(inline_ramp_up, more_than_all_time_is_believed_up_to_a_part)
{
    calls[0] = 5000000; /* 50 ms of 10 */
    calls[1] = 3000;
    cr_assert_eq(budget_choose_inline(&budget, &contact), 1);
    cr_assert(units[0].excluded && !units[1].excluded);
}

/* A few calls of one that sleeps are more than its budget, and nobody's harm. */
Test(inline_ramp_up, who_has_hardly_run_shows_nothing)
{
    const struct budget_exposure sleeps = {.elapsed = 20e6, .ran = 32e3};

    calls[0] = 400;
    cr_assert_eq(budget_choose_inline(&budget, &sleeps), 0);
    cr_assert(!units[0].excluded);
}

/* The recorder was kept from looking for 120 ms, after it had read the calls and before it saw who ran. */
Test(inline_ramp_up, a_pause_of_the_recorder_makes_nobody_hotter)
{
    const struct budget_exposure paused = budget_exposure_of(140e6, RAN_NS, 20e6);

    calls[0] = 6 * 40000;
    cr_assert_float_eq(paused.ran, 7 * RAN_NS, 1);
    cr_assert_eq(budget_choose_inline(&budget, &paused), 0);
    cr_assert(!units[0].excluded);
}

/* The next look tells of them. */
Test(inline_ramp_up, much_cooler_ones_do_not_go_for_what_the_hottest_hides)
{
    calls[0] = 5000000;
    calls[1] = 400000;
    calls[2] = 5000;
    cr_assert_eq(budget_choose_inline(&budget, &contact), 1);
    cr_assert(units[0].excluded && !units[1].excluded && !units[2].excluded);
}

Test(inline_ramp_up, own_work_counts_where_no_processor_is_idle)
{
    cr_assert_eq(own_work_cost(30, 1000, 1000, 0, 0.1), 0);
    cr_assert_float_eq(own_work_cost(30, 1000, 1000, 0.5, 0.1), 0.015, 1e-9);
    cr_assert_float_eq(own_work_cost(300, 1000, 500, 1, 0.1), 0.05, 1e-9);
    cr_assert_eq(own_work_cost(30, 0, 1000, 1, 0.1), 0);
    cr_assert_eq(own_work_cost(-5, 1000, 1000, 1, 0.1), 0);
}

/* It would have run on the processor for a tenth of the time only. */
Test(inline_ramp_up, own_work_costs_one_that_runs_little_in_its_own_time)
{
    cr_assert_float_eq(own_work_cost(30, 100, 1000, 0.5, 0.1), 0.015, 1e-9);
    cr_assert_float_eq(own_work_missed_part(100, 1000), 0.1, 1e-9);
    cr_assert_eq(own_work_missed_part(2000, 1000), 1);
    cr_assert_eq(own_work_missed_part(0, 0), 1);
}
