/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Times in which calls of a function are not recorded: rows of the table `blind`. */
#include "collector/budget/budget_state.h"

#define CALM_NS 1000000000u /* a function that had all calls recorded for so long is complete again */

int budget_gap_begin(struct budget *budget, uint32_t number, enum record_state state, uint64_t now_ns,
                     struct error *err)
{
    struct budget_function *function = &budget->accounts.functions[number];
    uint32_t function_id;
    int r =
        image_table_function_id(budget->options.images, budget->options.writer, number, &function_id, err);

    /* The time and the function tell the rows apart. */
    function->from_ns = now_ns > function->from_ns ? now_ns : function->from_ns + 1;
    function->state = state;
    return r ? r
             : trace_writer_blind(budget->options.writer, function_id, function->from_ns, 0,
                                  state == FUNCTION_EXCLUDED ? "budget: no probe" : "budget: limited",
                                  budget_calls_per_second(function), err);
}

/* Writes how the open row ends. `to_ns` 0: with the run. */
static int end_row(struct budget *budget, uint32_t number, uint64_t to_ns, struct error *err)
{
    struct budget_function *function = &budget->accounts.functions[number];
    int64_t missed =
        function->state == FUNCTION_EXCLUDED ? -1 : (int64_t)(function->missed - function->missed_reported);
    uint32_t function_id;
    int r =
        image_table_function_id(budget->options.images, budget->options.writer, number, &function_id, err);

    function->missed_reported = function->missed;
    return r ? r
             : trace_writer_blind_end(budget->options.writer, function_id, function->from_ns, to_ns, missed,
                                      budget_calls_per_second(function), err);
}

int budget_gap_end(struct budget *budget, uint32_t number, uint64_t now_ns, struct error *err)
{
    struct budget_function *function = &budget->accounts.functions[number];
    int r;

    if (function->state == FUNCTION_RECORDED)
        return 0;
    r = end_row(budget, number, now_ns > function->from_ns ? now_ns : function->from_ns + 1, err);
    function->state = FUNCTION_RECORDED;
    return r;
}

int budget_note_over_budget(struct budget *budget, uint32_t number, uint64_t ns, struct error *err)
{
    if (number >= budget->accounts.function_count)
        return 0;
    accounts_activate(&budget->accounts, number);
    budget->accounts.functions[number].last_missed_ns = ns;
    budget->urgent = true;
    return budget->accounts.functions[number].state == FUNCTION_RECORDED
               ? budget_gap_begin(budget, number, FUNCTION_THROTTLED,
                                  streams_realtime(budget->options.streams, ns), err)
               : 0;
}

int budget_end_calm_gaps(struct budget *budget, uint64_t now_ns, struct error *err)
{
    const struct active_set *active = &budget->accounts.active;
    int r = 0;

    for (size_t i = 0; !r && i < active->count; i++) {
        uint32_t number = active->functions[i];
        struct budget_function *function = &budget->accounts.functions[number];

        if (function->state == FUNCTION_RECORDED && function->missed != function->missed_reported) {
            /* Its gap just ended. */
            r = budget_note_over_budget(budget, number, now_ns, err);
        } else if (function->state == FUNCTION_THROTTLED && now_ns > function->last_missed_ns + CALM_NS) {
            accounts_rearm(&budget->accounts, number, now_ns);
            r = budget_gap_end(budget, number, streams_realtime(budget->options.streams, now_ns), err);
        }
    }
    return r;
}

int budget_close_gaps(struct budget *budget, struct error *err)
{
    int r = 0;

    for (uint32_t i = 0; !r && i < budget->accounts.function_count; i++)
        if (budget->accounts.functions[i].state != FUNCTION_RECORDED)
            r = end_row(budget, i, 0, err);
    return r;
}
