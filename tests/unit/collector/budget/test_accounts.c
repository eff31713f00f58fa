/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What counts become: calls, rates and costs of functions. */
#include <criterion/criterion.h>
#include <string.h>

#include "collector/budget/accounts.h"

#define FUNCTIONS 4u /* the last two have inline probes */
#define MS 1000000u

static struct plan_probe probes[] = {
    {.function = 0, .class = SITE_EMULATED, .kind = PLAN_AT_ENTRY, .return_probe = true},
    {.function = 1, .class = SITE_SINGLE_STEPPED, .kind = PLAN_AT_ENTRY},
    {.function = 1, .class = SITE_SINGLE_STEPPED, .kind = PLAN_AT_RETURN},
};
static struct plan plan = {.probes = probes, .count = 3};
static bool chosen[] = {false, false, true, true};
static struct inline_image inlined = {.chosen = chosen, .count = FUNCTIONS};
static uint64_t cookies[] = {0, 1, 2};
static struct traced_image image = {
    .plan = &plan, .function_count = FUNCTIONS, .inlined = &inlined, .cookies = cookies, .site_count = 3};
static struct budget_slot slots[3];
static struct accounts accounts;

static void begin(void)
{
    accounts = (struct accounts){.slots = slots,
                                 .costs = {.emulated_ns = 100,
                                           .single_stepped_ns = 300,
                                           .skipped_ns = 60,
                                           .return_ns = 50,
                                           .inline_ns = 10}};
    cr_assert_eq(accounts_add_image(&accounts, &image, 1000), 0);
    accounts_sample(&accounts, 10 * MS);
}

static void end(void)
{
    accounts_release(&accounts);
}

TestSuite(accounts, .init = begin, .fini = end);

Test(accounts, the_kernel_side_gets_the_cost_of_each_probe)
{
    cr_assert_eq(slots[0].cost_ns, 150);
    cr_assert_eq(slots[1].cost_ns, 300);
    cr_assert_eq(slots[0].limit, 1000 * 8 / 2 / 150 + 1);
}

Test(accounts, hits_cost_what_was_measured)
{
    slots[0].recorded = 10;
    slots[0].missed = 100;
    slots[1].recorded = 2;
    slots[2].recorded = 2;
    slots[2].outside = 1;
    accounts_sample(&accounts, 60 * MS);
    cr_assert_eq(accounts.units[0].cost_ns, 10 * 150 + 100 * 40);
    cr_assert_eq(accounts.units[1].cost_ns, 4 * 300 + 240);
    cr_assert_eq(accounts.functions[0].recorded, 10);
    cr_assert_eq(accounts.functions[0].missed, 100);
    cr_assert_eq(accounts.functions[1].recorded, 2, "its returns are not calls");
    accounts_sample(&accounts, 110 * MS);
    cr_assert_eq(accounts.units[0].cost_ns, 10 * 150 + 100 * 40, "nothing counts twice");
}

Test(accounts, lost_inline_calls_count_as_the_recorded_ones)
{
    const struct agent_record records[] = {
        {.function = 3}, {.function = 3}, {.function = 3}, {.function = 4}};

    accounts_inline_calls(&accounts, records, 4);
    accounts_inline_lost(&accounts, 40);
    accounts_sample(&accounts, 60 * MS);
    cr_assert_eq(accounts.units[2].cost_ns, 10 * (3 + 30));
    cr_assert_eq(accounts.units[3].cost_ns, 10 * (1 + 10));
    cr_assert_eq(accounts.inline_calls, 44);
    cr_assert_eq(accounts.functions[2].recorded, 3);
}

/* What a target writes may be anything. */
Test(accounts, calls_of_unknown_functions_are_ignored)
{
    const struct agent_record records[] = {
        {.function = 0}, {.function = FUNCTIONS + 1}, {.function = UINT32_MAX}};

    accounts_inline_calls(&accounts, records, 3);
    accounts_sample(&accounts, 60 * MS);
    cr_assert_eq(accounts.inline_calls, 0);
}

Test(accounts, an_excluded_function_keeps_its_rate)
{
    double rate;

    for (unsigned i = 1; i <= 10; i++) {
        slots[0].recorded = 100 * i;
        accounts_sample(&accounts, (10 + 50 * i) * MS);
    }
    rate = budget_calls_per_second(&accounts.functions[0]);
    cr_assert_float_eq(rate, 2000, 250);
    accounts.functions[0].state = FUNCTION_EXCLUDED;
    accounts_sample(&accounts, 3000ull * MS);
    cr_assert_eq(budget_calls_per_second(&accounts.functions[0]), rate);
}

Test(accounts, only_called_functions_are_active)
{
    for (unsigned i = 1; i <= 100; i++) {
        slots[0].recorded = i;
        accounts_sample(&accounts, (10 + 50 * i) * MS);
        for (unsigned f = 0; f < FUNCTIONS; f++) {
            struct probe_unit *unit = &accounts.units[f];

            unit->seen_ns = unit->cost_ns; /* as policy_decide() does */
            unit->recent_span_ns = 500000000;
        }
    }
    cr_assert_eq(accounts.active.count, 1);
    cr_assert_eq(accounts.active.functions[0], 0);
    slots[1].recorded = 1;
    accounts_sample(&accounts, 5020ull * MS);
    cr_assert_eq(accounts.active.count, 2, "its next call makes a function active");
}

Test(accounts, functions_that_share_a_probe_are_one_unit)
{
    cr_assert_neq(accounts.functions[0].unit, accounts.functions[1].unit);
    cookies[0] = COOKIE_NEXT_CALL;
    cr_assert_eq(accounts_add_image(&accounts, &image, 1000), 0);
    cr_assert_eq(accounts.functions[1].unit, 0);
    slots[1].recorded += 5;
    accounts_sample(&accounts, 60 * MS);
    cr_assert_geq(accounts.units[0].cost_ns, 5 * 300);
}
