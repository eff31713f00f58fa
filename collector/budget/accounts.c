/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/budget/accounts.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "collector/cost/known_costs.h"
#include "collector/plan/cost.h"

/* A hit in a program takes longer than in a loop of hits: it finds other things in the caches, and leaves
 * others. */
#define COLD 2.0
/* A stub takes 0.8 to 1.3 ns in a loop of calls, 3 more with the time of each call. In programs it took 2.4
 * to 14, the more the larger they are (docs/inline.md); redis-server pays this. */
#define INLINE_NS 12.0
#define INLINE_TIME_NS 3
/* The recorder takes 13 to 20 ns for it. */
#define READ_NS 18.0
#define LIMIT_PART 2 /* one function may take half of what a CPU has saved up */
#define SAVED_TICKS 8
#define RECENT_NS 1000000000.0 /* the span over which the rate of calls is judged */
#define WORK_NS 1000000000u
#define CHOSEN_NS 1000000000u
#define NOTHING 0.01 /* calls */

/* ------------------------------------------------------------------------------------ life */

/* What hits take on this machine; where that cannot be measured, what they took elsewhere. */
static struct hit_costs measure(void)
{
    const struct site_costs other = SITE_COSTS_DEFAULT;
    struct probe_costs costs = {0};
    double skipped;

    known_costs(KNOWN_COSTS_FOLDER, &costs);
    if (!costs.delivers)
        return (struct hit_costs){.emulated_ns = COLD * other.call_emulated,
                                  .single_stepped_ns = COLD * other.call_single_stepped,
                                  .return_ns = COLD * other.ret};
    skipped = costs.recorded_ns[COST_CALL_INFERRED] - costs.empty_ns[COST_CALL_EMULATED];
    return (struct hit_costs){
        .emulated_ns = COLD * costs.recorded_ns[COST_CALL_INFERRED],
        .single_stepped_ns = COLD * costs.recorded_ns[COST_CALL_SINGLE_STEPPED],
        .skipped_ns = skipped > 0 ? skipped : 0,
        .return_ns = COLD * costs.recorded_ns[COST_RETURN],
    };
}

void accounts_init(struct accounts *accounts, struct budget_slot *slots, bool timed)
{
    *accounts = (struct accounts){.slots = slots, .costs = measure()};
    accounts->costs.inline_ns = INLINE_NS + (timed ? INLINE_TIME_NS : 0);
    accounts->costs.read_ns = READ_NS;
    cpu_contention_sample(&accounts->contention, clock_ns(CLOCK_MONOTONIC));
}

void accounts_release(struct accounts *accounts)
{
    free(accounts->active.functions);
    free(accounts->active.units);
    free(accounts->inline_new);
    free(accounts->units);
    free(accounts->functions);
    free(accounts->probes);
}

/* ------------------------------------------------------------------------------------ new images */

static int reserve(struct accounts *accounts, size_t probes, size_t functions)
{
    if (array_reserve(&accounts->probes, &accounts->probe_capacity, probes) ||
        array_reserve(&accounts->functions, &accounts->function_capacity, functions) ||
        array_reserve(&accounts->units, &accounts->unit_capacity, functions) ||
        array_reserve(&accounts->inline_new, &accounts->inline_capacity, functions) ||
        array_reserve(&accounts->active.functions, &accounts->active.capacity, functions) ||
        array_reserve(&accounts->active.units, &accounts->active.unit_capacity, functions))
        return -ENOMEM;
    for (; accounts->probe_count < probes; accounts->probe_count++)
        accounts->probes[accounts->probe_count] = (struct budget_probe){.function = NO_FUNCTION};
    for (; accounts->function_count < functions; accounts->function_count++) {
        size_t number = accounts->function_count;

        accounts->functions[number] = (struct budget_function){.unit = (uint32_t)number};
        accounts->units[number] = (struct probe_unit){0};
        accounts->inline_new[number] = 0;
    }
    accounts_reset_active(accounts); /* units may lie elsewhere now */
    return 0;
}

/* What a probe costs, and which function pays for it. */
static void add_probe(struct accounts *accounts, const struct traced_image *image, size_t i, uint32_t tick_ns)
{
    const struct plan_probe *planned = &image->plan->probes[i];
    struct budget_slot *slot = &accounts->slots[image->first_index + i];
    struct budget_probe *probe = &accounts->probes[image->first_index + i];
    const struct hit_costs *costs = &accounts->costs;
    double ns = planned->class == SITE_EMULATED ? costs->emulated_ns : costs->single_stepped_ns;
    double saved = (double)tick_ns * SAVED_TICKS;

    probe->function = image->first_function + (uint32_t)planned->function;
    probe->missed_ns = (uint32_t)(ns > costs->skipped_ns ? ns - costs->skipped_ns : ns);
    probe->recorded_ns = (uint32_t)(ns + (planned->return_probe ? costs->return_ns : 0));
    probe->is_return = planned->kind == PLAN_AT_RETURN;
    slot->cost_ns = probe->recorded_ns;
    slot->limit = (uint32_t)(saved / LIMIT_PART / (double)probe->recorded_ns) + 1;
    accounts->functions[probe->function].probed = true;
}

/* The two functions share a probe. */
static void join(struct accounts *accounts, uint32_t left, uint32_t right)
{
    uint32_t a = accounts->functions[left].unit, b = accounts->functions[right].unit;
    uint32_t least = a < b ? a : b, other = a < b ? b : a;

    if (a == b)
        return;
    for (size_t i = 0; i < accounts->function_count; i++)
        if (accounts->functions[i].unit == other)
            accounts->functions[i].unit = least;
}

int accounts_add_image(struct accounts *accounts, const struct traced_image *image, uint32_t tick_ns)
{
    int r = reserve(accounts, image->first_index + image->plan->count,
                    image->first_function + image->function_count);

    if (r)
        return r;
    for (size_t i = 0; i < image->plan->count; i++)
        add_probe(accounts, image, i, tick_ns);
    for (size_t i = 0; i < image->site_count; i++) {
        uint32_t index = (uint32_t)image->cookies[i];

        if (image->cookies[i] & (COOKIE_NEXT_CALL | COOKIE_NEXT_JUMP))
            join(accounts, accounts->probes[index].function, accounts->probes[index + 1].function);
    }
    for (size_t i = 0; image->inlined && i < image->function_count; i++) {
        struct budget_function *function = &accounts->functions[image->first_function + i];

        if (!image->inlined->chosen[i])
            continue;
        function->probed = function->inlined = true;
        accounts->units[image->first_function + i].cheap = true;
    }
    return 0;
}

/* ------------------------------------------------------------------------------------ the active set */

void accounts_activate(struct accounts *accounts, uint32_t number)
{
    struct budget_function *function = &accounts->functions[number];
    struct probe_unit *unit = &accounts->units[function->unit];
    struct active_set *active = &accounts->active;

    if (!function->active)
        active->functions[active->count++] = number;
    if (!unit->active)
        active->units[active->unit_count++] = unit;
    function->active = unit->active = true;
}

void accounts_reset_active(struct accounts *accounts)
{
    accounts->active.count = accounts->active.unit_count = 0;
    accounts->active.chosen_ns = 0;
    for (uint32_t i = 0; i < accounts->function_count; i++)
        accounts->functions[i].active = accounts->units[i].active = false;
}

/* Whether nothing is left of earlier calls: then the function can leave the active set until it is called. */
static bool becomes_quiet(struct budget_function *function)
{
    if (function->state != FUNCTION_RECORDED || function->missed != function->missed_reported ||
        function->recent_calls > NOTHING || function->inline_weight > NOTHING ||
        function->recent_span_ns < RECENT_NS / 2)
        return false;
    function->recent_calls = function->inline_weight = 0;
    function->recent_span_ns = RECENT_NS; /* what it would come to */
    return true;
}

/* Once a second: functions that have not been called for so long that their rate has fallen to nothing leave the set of
 * active ones, all others join it. */
static void accounts_choose_active(struct accounts *accounts, uint64_t now_ns)
{
    struct active_set *active = &accounts->active;

    if (active->chosen_ns && now_ns - active->chosen_ns < CHOSEN_NS)
        return;
    accounts_reset_active(accounts);
    active->chosen_ns = now_ns;
    for (uint32_t i = 0; i < accounts->function_count; i++) {
        bool quiet = !accounts->inline_new[i] && becomes_quiet(&accounts->functions[i]);

        if (accounts->functions[i].probed && (!policy_is_quiet(accounts_unit(accounts, i)) || !quiet))
            accounts_activate(accounts, i);
    }
}

/* ------------------------------------------------------------------------------------ counts */

/* Adds what a probe has counted since the last sample. */
static void read_probe(struct accounts *accounts, size_t index, uint64_t now_ns)
{
    struct budget_probe *probe = &accounts->probes[index];
    struct budget_function *function = &accounts->functions[probe->function];
    uint64_t recorded = __atomic_load_n(&accounts->slots[index].recorded, __ATOMIC_RELAXED);
    uint64_t missed = __atomic_load_n(&accounts->slots[index].missed, __ATOMIC_RELAXED);
    uint64_t outside = __atomic_load_n(&accounts->slots[index].outside, __ATOMIC_RELAXED);
    uint64_t more = recorded - probe->recorded, more_missed = missed - probe->missed;
    uint64_t elsewhere = outside - probe->outside; /* no window was open: paid, and reported by trigger.c */

    if (!more && !more_missed && !elsewhere)
        return;
    accounts_activate(accounts, probe->function);
    accounts_unit(accounts, probe->function)->cost_ns +=
        more * probe->recorded_ns + (more_missed + elsewhere) * probe->missed_ns;
    probe->recorded = recorded;
    probe->missed = missed;
    probe->outside = outside;
    if (probe->is_return)
        return;
    function->recorded += more;
    function->missed += more_missed;
    function->recent_calls += (double)(more + more_missed + elsewhere);
    if (more_missed)
        function->last_missed_ns = now_ns;
}

void accounts_inline_calls(struct accounts *accounts, const struct agent_record *records, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t number = (records[i].function & ~AGENT_EXIT) - 1; /* a return costs what a call does */

        if (number >= accounts->function_count) /* what a target writes may be anything */
            continue;
        if (!accounts->inline_new[number]++)
            accounts_activate(accounts, number);
    }
}

void accounts_inline_lost(struct accounts *accounts, uint64_t calls)
{
    accounts->inline_lost += calls;
}

/* How often inline probes have seen each function of late: half of what it was, and what is new. */
static double weigh_inline(struct accounts *accounts)
{
    double all = 0;

    for (size_t i = 0; i < accounts->active.count; i++) {
        uint32_t number = accounts->active.functions[i];
        struct budget_function *function = &accounts->functions[number];

        if (!function->inlined)
            continue;
        function->inline_weight = function->inline_weight / 2 + accounts->inline_new[number];
        all += function->inline_weight;
    }
    return all;
}

/* Adds what inline probes have seen since the last sample. The functions of lost calls are unknown: they
 * count as those that were recorded of late. In this sample these may be a few rare ones, since the hot
 * function that filled the buffer was just excluded. */
static void read_inline(struct accounts *accounts)
{
    double all = weigh_inline(accounts), each_lost, cost = accounts_inline_cost(accounts);
    uint64_t calls = 0;

    if (all < 1)
        return;
    each_lost = (double)accounts->inline_lost / all;
    for (size_t i = 0; i < accounts->active.count; i++) {
        uint32_t number = accounts->active.functions[i], more = accounts->inline_new[number];
        struct budget_function *function = &accounts->functions[number];

        if (!function->inlined)
            continue;
        accounts->inline_new[number] = 0;
        calls += more;
        accounts_unit(accounts, number)->cost_ns +=
            (uint64_t)(cost * (more + each_lost * function->inline_weight));
        function->recorded += more;
        if (function->state != FUNCTION_EXCLUDED)
            function->recent_calls += more;
    }
    accounts->inline_calls += calls + accounts->inline_lost;
    accounts->inline_ns += (uint64_t)(cost * (double)(calls + accounts->inline_lost));
    accounts->inline_lost = 0;
}

void accounts_sample(struct accounts *accounts, uint64_t now_ns)
{
    double elapsed = accounts->sampled_ns ? (double)(now_ns - accounts->sampled_ns) : 0;
    double keep = elapsed < RECENT_NS ? 1 - elapsed / RECENT_NS : 0;

    accounts_choose_active(accounts, now_ns);
    for (size_t i = 0; i < accounts->active.count; i++) {
        struct budget_function *function = &accounts->functions[accounts->active.functions[i]];

        if (function->state == FUNCTION_EXCLUDED)
            continue; /* it keeps the rate that it was excluded with */
        function->recent_calls *= keep;
        function->recent_span_ns = keep * function->recent_span_ns + elapsed;
    }
    for (size_t i = 0; i < accounts->probe_count; i++)
        if (accounts->probes[i].function != NO_FUNCTION)
            read_probe(accounts, i, now_ns);
    read_inline(accounts);
    accounts->sampled_ns = now_ns;
}

void accounts_rearm(struct accounts *accounts, uint32_t number, uint64_t now_ns)
{
    for (size_t i = 0; i < accounts->probe_count; i++)
        if (accounts->probes[i].function == number)
            __atomic_store_n(&accounts->slots[i].reported, 0, __ATOMIC_SEQ_CST);
    for (size_t i = 0; i < accounts->probe_count; i++)
        if (accounts->probes[i].function == number)
            read_probe(accounts, i, now_ns);
}

/* ------------------------------------------------------------------------------------ the recorder's work */

void accounts_mark_work(struct accounts *accounts, uint64_t target_ns)
{
    accounts->work.own_ns = own_work_cpu_ns();
    accounts->work.target_ns = target_ns;
    accounts->work.ns = clock_ns(CLOCK_MONOTONIC);
    accounts->work.calls = accounts->inline_calls + accounts->early_calls;
}

double accounts_work(const struct accounts *accounts)
{
    uint64_t calls = accounts->inline_calls + accounts->early_calls - accounts->work.calls;

    return (double)(own_work_cpu_ns() - accounts->work.own_ns) - accounts->costs.read_ns * (double)calls;
}

void accounts_sample_work(struct accounts *accounts, uint64_t now_ns, uint64_t target_ns, double share)
{
    struct own_work *work = &accounts->work;
    double used = target_ns > work->target_ns ? (double)(target_ns - work->target_ns) : 0;

    if (now_ns - work->ns < WORK_NS)
        return;
    work->share = (work->share + own_work_cost(accounts_work(accounts), used, (double)(now_ns - work->ns),
                                               accounts->contention.part, share)) /
                  2;
    accounts_mark_work(accounts, target_ns);
}
