/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who is seen by its calls instead of at its entry.
 *
 * One instruction carries one probe. Where a call is already the entry site of the function that it stands
 * in, the call is given to the callee, and the caller gets another site, as a rule a dear one. That is never
 * worse: the call stands in the caller's entry block, so the callee is called at least once for every call of
 * the caller, and both would pay the same for a single step. Where all calls are such there is nothing to
 * gain, and nothing changes. The caller may then be seen by its own calls in turn: hence the rounds.
 */
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "collector/plan/planner.h"

/* Chains of functions that begin by calling one another are short, and each round reads all code. */
#define ROUNDS 2

static bool is_callee(const struct planner *planner, size_t index)
{
    const struct choice *choice = &planner->choices[index];

    if (!choice->is_wanted || choice->was_callee || choice->calls)
        return false;
    if (choice->site.class == SITE_REFUSED)
        return choice->site.refusal == SITE_LOOP;
    return choice->site.class == SITE_SINGLE_STEPPED &&
           planner_cost(planner, choice) > planner->costs.call_emulated;
}

static int collect_callees(struct planner *planner, struct callee **ret_callees, size_t *ret_count)
{
    AUTO_FREE struct callee *callees = NULL;
    size_t count = 0, capacity = 0;

    for (size_t i = 0; i < planner->count; i++) {
        if (!is_callee(planner, i))
            continue;
        if (array_reserve(&callees, &capacity, count + 1) < 0)
            return -ENOMEM;
        callees[count++] = (struct callee){.function = i};
        planner->choices[i].was_callee = true;
    }
    *ret_callees = take_pointer(callees);
    *ret_count = count;
    return 0;
}

/* The function whose entry site the instruction at `address` is, or NULL. */
static struct choice *owner_of(const struct planner *planner, uint64_t address)
{
    const struct image_function *function = image_functions_find(planner->functions, planner->count, address);
    struct choice *choice = function ? &planner->choices[function - planner->functions] : NULL;

    if (!choice || !choice->is_wanted || choice->calls || choice->site.class == SITE_REFUSED ||
        function->address + choice->site.offset != address)
        return NULL;
    return choice;
}

/* Reserves the calls, or sets them free again, and lets those that have one of them as their site choose
 * anew. Returns false where one of these finds no other. */
static bool reserve(struct planner *planner, const struct call_site *calls, size_t count)
{
    bool all_found = true;

    for (size_t i = 0; i < count; i++) {
        struct choice *owner = owner_of(planner, calls[i].address);

        flow_map_set(planner->map, calls[i].address, FLOW_RESERVED);
        if (!owner)
            continue;
        planner_choose(planner, (size_t)(owner - planner->choices));
        all_found &= owner->site.class != SITE_REFUSED;
    }
    return all_found;
}

static void set_free(struct planner *planner, const struct call_site *calls, size_t count)
{
    for (size_t i = 0; i < count; i++)
        flow_map_clear(planner->map, calls[i].address, FLOW_RESERVED);
    for (size_t i = 0; i < count; i++) {
        const struct image_function *function =
            image_functions_find(planner->functions, planner->count, calls[i].address);
        size_t index = function ? (size_t)(function - planner->functions) : planner->count;

        if (function && planner->choices[index].is_wanted && !planner->choices[index].calls)
            planner_choose(planner, index);
    }
}

/* Whether the calls are free to be given away, and that gains anything: if each of them is the site of the
 * function that it stands in, these would pay what the callee saves. */
static bool is_gain(const struct planner *planner, const struct call_site *calls, size_t count)
{
    size_t owned = 0;

    for (size_t i = 0; i < count; i++) {
        if (flow_map_has(planner->map, calls[i].address, FLOW_RESERVED))
            return false;
        owned += owner_of(planner, calls[i].address) != NULL;
    }
    return owned < count;
}

static int give_calls(struct planner *planner, const struct callee *callee, const struct call_site *calls)
{
    struct choice *choice = &planner->choices[callee->function];

    if (array_reserve(&planner->calls, &planner->call_capacity, planner->call_count + callee->count) < 0)
        return -ENOMEM;
    if (!is_gain(planner, calls, callee->count))
        return 0;
    if (!reserve(planner, calls, callee->count)) {
        set_free(planner, calls, callee->count);
        return 0;
    }
    memcpy(planner->calls + planner->call_count, calls, callee->count * sizeof(*calls));
    choice->first_call = planner->call_count;
    choice->calls = callee->count;
    planner->call_count += callee->count;
    if (choice->no_return == PLAN_RETURN_PROBED)
        choice->no_return = PLAN_RETURN_DEAR;
    return 0;
}

/* Returns how many functions there were to look at. */
static int play_round(struct planner *planner, size_t *ret_count)
{
    size_t most = planner->options->calls_max ? planner->options->calls_max : PLAN_CALLS_MAX;
    CLEANUP(call_sites_release) struct call_sites sites = {0};
    AUTO_FREE struct callee *callees = NULL;
    int r = collect_callees(planner, &callees, ret_count);

    if (r < 0 || *ret_count == 0)
        return r;
    r = call_sites_find(planner->disasm, planner->map, planner->functions,
                        !elf_image_facts(planner->image)->pie, callees, *ret_count, &sites);
    for (size_t i = 0; i < *ret_count && r == 0; i++)
        if (callees[i].is_complete && callees[i].count <= most)
            r = give_calls(planner, &callees[i], sites.items + callees[i].first);
    return r;
}

int planner_prefer_calls(struct planner *planner)
{
    for (int round = 0; round < ROUNDS; round++) {
        size_t count;
        int r = play_round(planner, &count);

        if (r < 0)
            return r;
        if (count == 0)
            break;
    }
    return 0;
}
