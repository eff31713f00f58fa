/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the budget came to: for people, and for the store. */
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "collector/budget/budget_state.h"

const char *record_state_name(enum record_state state)
{
    static const char *const names[] = {
        [FUNCTION_RECORDED] = "traced", [FUNCTION_THROTTLED] = "limited", [FUNCTION_EXCLUDED] = "out"};

    return names[state];
}

void budget_totals(const struct budget *budget, struct budget_totals *ret_totals)
{
    *ret_totals = (struct budget_totals){.share = budget->options.share,
                                         .estimated_ns = budget->policy.paid_ns,
                                         .cpu_ns = budget->policy.used_ns,
                                         .worst_second = budget->policy.worst_share};
    for (size_t i = 0; i < budget->accounts.function_count; i++) {
        const struct budget_function *function = &budget->accounts.functions[i];

        ret_totals->functions += function->probed;
        ret_totals->limited += function->state == FUNCTION_THROTTLED;
        ret_totals->out += function->state == FUNCTION_EXCLUDED;
        ret_totals->page_excluded += function->probed && budget_unit(budget, (uint32_t)i)->page_excluded;
    }
}

static int by_rate(const void *left, const void *right)
{
    const struct budget_function_status *a = left, *b = right;

    return (a->calls_per_second < b->calls_per_second) - (a->calls_per_second > b->calls_per_second);
}

int budget_functions(const struct budget *budget, struct budget_function_status **ret_functions,
                     size_t *ret_count, struct error *err)
{
    struct budget_function_status *list = calloc(budget->accounts.function_count + 1, sizeof(*list));
    size_t count = 0;

    if (!list)
        return error_no_memory(err);
    for (size_t n = 0; n < budget->image_count; n++) {
        const struct traced_image *image = budget->images[n].image;

        for (size_t i = 0; i < image->function_count; i++) {
            const struct budget_function *function = &budget->accounts.functions[image->first_function + i];
            const struct image_function *named = &image->functions[i];

            if (function->recorded || function->missed || function->state == FUNCTION_EXCLUDED)
                list[count++] = (struct budget_function_status){
                    .name = named->demangled ? named->demangled : named->name,
                    .image = image->path,
                    .state = function->state,
                    .calls_per_second = budget_calls_per_second(function),
                    .recorded = function->recorded,
                    .missed = function->missed,
                };
        }
    }
    qsort(list, count, sizeof(*list), by_rate);
    *ret_functions = list;
    *ret_count = count;
    return 0;
}

static int tag(struct budget *budget, const char *key, int decimals, double value, const char *unit,
               struct error *err)
{
    char text[48];

    snprintf(text, sizeof(text), "%.*f%s", decimals, value, unit);
    return trace_writer_tag(budget->options.writer, key, text, err);
}

int budget_store_totals(struct budget *budget, struct error *err)
{
    struct budget_totals totals;
    double own;
    int r;

    budget_totals(budget, &totals);
    own = (double)totals.cpu_ns - (double)totals.estimated_ns;
    r = tag(budget, "budget", 2, 100 * totals.share, " %", err);
    if (!r)
        r = tag(budget, "budget: functions", 0, (double)totals.functions, "", err);
    if (!r)
        r = tag(budget, "budget: probes took (estimate)", 3, (double)totals.estimated_ns / 1e9, " s", err);
    if (!r && budget->accounts.early_ns)
        r = tag(budget, "budget: probes took before the recording began (estimate)", 3,
                (double)budget->accounts.early_ns / 1e9, " s", err);
    if (!r && budget->accounts.inline_calls)
        r = tag(budget, "budget: of that, inline probes (estimate)", 3,
                (double)budget->accounts.inline_ns / 1e9, " s", err);
    if (!r)
        r = tag(budget, "budget: the target used (measured)", 3, (double)totals.cpu_ns / 1e9, " s", err);
    if (!r && totals.page_excluded)
        r = tag(budget, "budget: functions left out for their pages", 0, (double)totals.page_excluded, "",
                err);
    if (!r && own > 0)
        r = tag(budget, "budget: share", 2, 100 * (double)totals.estimated_ns / own, " %", err);
    if (!r && totals.worst_second > 0)
        r = tag(budget, "budget: share in the worst second", 2, 100 * totals.worst_second, " %", err);
    return r;
}
