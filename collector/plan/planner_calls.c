/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who is seen by its calls instead of at its entry. A call may at the same time be the entry site of the
 * function that it stands in: one breakpoint tells both then.
 */
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "collector/plan/got_calls.h"
#include "collector/plan/planner.h"

/* Whether the reason lies in the function's first instructions, and not in what it is. */
static bool is_code_refusal(enum site_refusal refusal)
{
    switch (refusal) {
    case SITE_UNDECODABLE:
    case SITE_NO_ROOM:
    case SITE_LOOP:
    case SITE_PREFIX:
    case SITE_TRAP:
    case SITE_PRIVILEGED:
    case SITE_OPCODE:
        return true;
    default:
        return false;
    }
}

static bool is_callee(const struct planner *planner, size_t index)
{
    const struct choice *choice = &planner->choices[index];

    if (!choice->is_wanted)
        return false;
    if (choice->site.class == SITE_REFUSED)
        return is_code_refusal(choice->site.refusal);
    return choice->site.class == SITE_SINGLE_STEPPED &&
           site_cost(&planner->costs, choice->site.class) > planner->costs.call_emulated;
}

static int collect_callees(struct planner *planner, struct callee **ret_callees, size_t *ret_count)
{
    AUTO_FREE struct callee *callees = NULL;
    size_t count = 0, capacity = 0;

    for (size_t i = 0; i < planner->count; i++) {
        if (!is_callee(planner, i) || planner->choices[i].rule == PLAN_RETURN_SITES)
            continue;
        if (array_reserve(&callees, &capacity, count + 1) < 0)
            return -ENOMEM;
        callees[count++] = (struct callee){.function = i};
    }
    *ret_callees = take_pointer(callees);
    *ret_count = count;
    return 0;
}

static int give_calls(struct planner *planner, const struct callee *callee, const struct call_site *calls)
{
    struct choice *choice = &planner->choices[callee->function];

    if (array_reserve(&planner->calls, &planner->call_capacity, planner->call_count + callee->count) < 0)
        return -ENOMEM;
    if (callee->count)
        memcpy(planner->calls + planner->call_count, calls, callee->count * sizeof(*calls));
    choice->first_call = planner->call_count;
    choice->calls = callee->count;
    planner->call_count += callee->count;
    if (choice->no_return == PLAN_RETURN_PROBED || choice->no_return == PLAN_RETURN_SITES)
        choice->no_return = PLAN_RETURN_AT_CALLS;
    return 0;
}

int planner_prefer_calls(struct planner *planner)
{
    size_t most = planner->options->calls_max ? planner->options->calls_max : PLAN_CALLS_MAX, count;
    CLEANUP(call_sites_release) struct call_sites sites = {0};
    AUTO_FREE struct callee *callees = NULL;
    int r = collect_callees(planner, &callees, &count);

    if (r < 0 || count == 0)
        return r;
    r = call_sites_find(planner->disasm, planner->map, planner->functions,
                        !elf_image_facts(planner->image)->pie, callees, count, &sites);
    for (size_t i = 0; i < count && r == 0; i++)
        if (callees[i].is_complete && callees[i].count <= most)
            r = give_calls(planner, &callees[i], callees[i].count ? &sites.items[callees[i].first] : NULL);
    return r;
}

/* ------------------------------------------------------------------------------------------ without a stub
 */

/* Whether one of the calls is where the function that it stands in is probed: two calls of different length
 * cannot be told by one probe. */
static bool shares_entry(const struct planner *planner, const struct call_site *calls, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct image_function *around =
            image_functions_find(planner->functions, planner->count, calls[i].address);
        const struct choice *choice = around ? &planner->choices[around - planner->functions] : NULL;

        if (choice && choice->is_wanted && !choice->calls && choice->site.class != SITE_REFUSED &&
            !calls[i].is_jump && around->address + choice->site.offset == calls[i].address)
            return true;
    }
    return false;
}

int planner_find_stubless(struct planner *planner)
{
    size_t most = planner->options->calls_max ? planner->options->calls_max : PLAN_CALLS_MAX;
    CLEANUP(call_sites_release) struct call_sites sites = {0};
    AUTO_FREE struct callee *callees = NULL;
    size_t count = 0, capacity = 0;
    int r;

    for (size_t i = 0; i < planner->count; i++) {
        if (!planner->choices[i].is_wanted || !(planner->functions[i].flags & IMAGE_FUNCTION_NO_STUB))
            continue;
        if (array_reserve(&callees, &capacity, count + 1) < 0)
            return -ENOMEM;
        callees[count++] = (struct callee){.function = i};
    }
    if (count == 0)
        return 0;
    r = got_calls_find(planner->disasm, planner->map, planner->functions, planner->count, callees, count,
                       &sites);
    for (size_t i = 0; i < count && r == 0; i++) {
        const struct call_site *calls = callees[i].count ? &sites.items[callees[i].first] : NULL;

        if (callees[i].is_complete && callees[i].count <= most &&
            !shares_entry(planner, calls, callees[i].count))
            r = give_calls(planner, &callees[i], calls);
    }
    return r;
}
