/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which functions a look has to look at: of a large program that has probes nearly none is called, and looks
 * come twenty times a second.
 *
 * A function is woken by its calls. All are looked through once a second: who is not in stays awake, whoever
 * decided that.
 */
#include "collector/budget/budget_state.h"

#define CHOSEN_NS 1000000000u
#define NOTHING 0.01 /* calls */

/* Whether the function can be done without until it is called again: then nothing is left of earlier calls.
 */
static bool falls_asleep(struct budget_function *function)
{
    if (function->state != FUNCTION_RECORDED || function->missed != function->missed_reported ||
        function->recent_calls > NOTHING || function->inline_weight > NOTHING ||
        function->recent_span_ns < BUDGET_RECENT_NS / 2)
        return false;
    function->recent_calls = function->inline_weight = 0;
    function->recent_span_ns = BUDGET_RECENT_NS; /* what it would come to */
    return true;
}

void budget_activate_none(struct budget *budget)
{
    budget->awake.count = budget->awake.unit_count = 0;
    budget->awake.chosen_ns = 0;
    for (uint32_t i = 0; i < budget->function_count; i++)
        budget->functions[i].awake = budget->units[i].awake = false;
}

void budget_choose_active(struct budget *budget, uint64_t now_ns)
{
    struct budget_active_set *awake = &budget->awake;

    if (awake->chosen_ns && now_ns - awake->chosen_ns < CHOSEN_NS)
        return;
    budget_activate_none(budget);
    awake->chosen_ns = now_ns;
    for (uint32_t i = 0; i < budget->function_count; i++) {
        bool rests = !budget->inline_new[i] && falls_asleep(&budget->functions[i]);

        if (budget->functions[i].probed && (!policy_is_quiet(budget_unit(budget, i)) || !rests))
            budget_activate(budget, i);
    }
}
