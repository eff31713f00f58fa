/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What one recording of a binary leaves to the next: which functions were called too often. */
#include "base/cleanup.h"
#include "collector/budget/budget_state.h"

#define PLAN_NS 10000000000u

int budget_read_plan(struct budget *budget, const struct traced_image *image, uint64_t now_ns,
                     struct error *err)
{
    const char *build_id = elf_image_facts(image->elf)->build_id;
    AUTO_FREE struct trace_budget_plan *plan = NULL;
    size_t count = 0, next = 0;
    int r = build_id ? tracestore_budget_plan(budget->options.store, build_id, &plan, &count, err) : 0;

    for (size_t i = 0; !r && i < image->function_count; i++) { /* both are sorted by address */
        uint32_t number = image->first_function + (uint32_t)i;
        struct budget_function *function = &budget->accounts.functions[number];

        while (next < count && plan[next].address < image->functions[i].address)
            next++;
        function->planned = next < count && plan[next].address == image->functions[i].address;
        if (!function->planned || !function->probed || function->inlined) /* it costs little now */
            continue;
        budget_exclude(budget, number, plan[next].calls_per_second,
                       plan[next].calls_per_second * budget->accounts.costs.emulated_ns / 1e9, now_ns);
    }
    return r;
}

double budget_planned(const struct budget *budget, uint32_t number)
{
    const struct budget_function *function = &budget->accounts.functions[number];
    const struct probe_unit *unit = budget_unit(budget, number);

    if (!function->probed || unit->waits || unit->page_excluded)
        return -1;
    /* One that was excluded and is on trial has not shown yet that it can stay. */
    if (function->state == FUNCTION_EXCLUDED || (unit->trial && unit->expected > 0))
        return budget_calls_per_second(function) + 1e-9;
    return function->recorded && !function->inlined ? 0 : -1;
}

int budget_store_plan(struct budget *budget, const struct traced_image *image, bool end, struct error *err)
{
    const char *build_id = elf_image_facts(image->elf)->build_id;
    int r = 0;

    for (size_t i = 0; build_id && !r && i < image->function_count; i++) {
        uint32_t number = image->first_function + (uint32_t)i;
        struct budget_function *function = &budget->accounts.functions[number];
        double planned = budget_planned(budget, number);

        bool excluded = planned > 0, is_new = excluded != function->planned || (excluded && end);

        if (planned < 0 || !is_new)
            continue;
        function->planned = excluded;
        r = trace_writer_budget_plan(budget->options.writer, build_id, image->functions[i].address, planned,
                                     err);
    }
    return r;
}

int budget_store_plans(struct budget *budget, uint64_t now_ns, struct error *err)
{
    int r = 0;

    if (now_ns - budget->planned_ns < PLAN_NS)
        return 0;
    for (size_t i = 0; budget->planned_ns && !r && i < budget->image_count; i++)
        if (!budget->images[i].apart)
            r = budget_store_plan(budget, budget->images[i].image, false, err);
    budget->planned_ns = now_ns;
    return r;
}
