/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the counts of the kernel side say, and what becomes of it in the store. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "collector/budget/budget_state.h"

#define LOOK_NS 50000000u
#define ALERT_SAMPLE_NS 20000000u
#define PAGES_NS 5000000000u
#define OWN_NS 1000000000u
#define CALM_NS 1000000000u /* a function of which nothing was left out for so long is complete again */

/* ------------------------------------------------------------------------------------ counts */

/* Adds what a probe has counted since the last look. */
static void read_probe(struct budget *budget, size_t index, uint64_t now_ns)
{
    struct budget_probe *probe = &budget->probes[index];
    struct budget_function *function = &budget->functions[probe->function];
    uint64_t recorded = __atomic_load_n(&budget->slots[index].recorded, __ATOMIC_RELAXED);
    uint64_t missed = __atomic_load_n(&budget->slots[index].missed, __ATOMIC_RELAXED);
    uint64_t outside = __atomic_load_n(&budget->slots[index].outside, __ATOMIC_RELAXED);
    uint64_t more = recorded - probe->recorded, left_out = missed - probe->missed;
    uint64_t elsewhere = outside - probe->outside; /* no window was open: paid, and told by trigger.c */

    if (!more && !left_out && !elsewhere)
        return;
    budget_activate(budget, probe->function);
    budget_unit(budget, probe->function)->cost_ns +=
        more * probe->recorded_ns + (left_out + elsewhere) * probe->missed_ns;
    probe->recorded = recorded;
    probe->missed = missed;
    probe->outside = outside;
    if (probe->is_return)
        return;
    function->recorded += more;
    function->missed += left_out;
    function->recent_calls += (double)(more + left_out + elsewhere);
    if (left_out)
        function->last_missed_ns = now_ns;
}

void budget_inline_calls(struct budget *budget, const struct agent_record *records, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t number = records[i].function - 1;

        if (number >= budget->function_count) /* what a target writes may be anything */
            continue;
        if (!budget->inline_new[number]++)
            budget_activate(budget, number);
    }
}

void budget_inline_lost(struct budget *budget, uint64_t calls)
{
    budget->inline_lost += calls;
}

/* How often inline probes have seen each function of late: half of what it was, and what is new. */
static double weigh_inline(struct budget *budget)
{
    double all = 0;

    for (size_t i = 0; i < budget->awake.count; i++) {
        uint32_t number = budget->awake.functions[i];
        struct budget_function *function = &budget->functions[number];

        if (!function->inlined)
            continue;
        function->inline_weight = function->inline_weight / 2 + budget->inline_new[number];
        all += function->inline_weight;
    }
    return all;
}

/* Adds what inline probes have seen since the last look. Nobody knows which functions the calls were of that
 * found no room. They count as those that found it of late: in this look it may be but a few rare ones, since
 * the hot one was just taken out that the room was full of. */
static void read_inline(struct budget *budget)
{
    double all = weigh_inline(budget), each_lost;
    uint64_t calls = 0;

    if (all < 1)
        return;
    each_lost = (double)budget->inline_lost / all;
    for (size_t i = 0; i < budget->awake.count; i++) {
        uint32_t number = budget->awake.functions[i], more = budget->inline_new[number];
        struct budget_function *function = &budget->functions[number];

        if (!function->inlined)
            continue;
        budget->inline_new[number] = 0;
        calls += more;
        budget_unit(budget, number)->cost_ns +=
            (uint64_t)(budget_inline_cost(budget) * (more + each_lost * function->inline_weight));
        function->recorded += more;
        if (function->state != FUNCTION_EXCLUDED)
            function->recent_calls += more;
    }
    budget->inline_calls += calls + budget->inline_lost;
    budget->inline_ns += (uint64_t)(budget_inline_cost(budget) * (double)(calls + budget->inline_lost));
    budget->inline_lost = 0;
}

static void read_counts(struct budget *budget, uint64_t now_ns)
{
    double elapsed = budget->sampled_ns ? (double)(now_ns - budget->sampled_ns) : 0;
    double keep = elapsed < BUDGET_RECENT_NS ? 1 - elapsed / BUDGET_RECENT_NS : 0;

    budget_choose_active(budget, now_ns);
    for (size_t i = 0; i < budget->awake.count; i++) {
        struct budget_function *function = &budget->functions[budget->awake.functions[i]];

        if (function->state == FUNCTION_EXCLUDED)
            continue; /* it keeps the rate that it was taken out with */
        function->recent_calls *= keep;
        function->recent_span_ns = keep * function->recent_span_ns + elapsed;
    }
    for (size_t i = 0; i < budget->probe_count; i++)
        if (budget->probes[i].function != NO_FUNCTION)
            read_probe(budget, i, now_ns);
    read_inline(budget);
}

/* ------------------------------------------------------------------------------------ rows of `blind` */

int budget_blind_begin(struct budget *budget, uint32_t number, enum record_state state, uint64_t now_ns,
                       struct error *err)
{
    struct budget_function *function = &budget->functions[number];
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
    struct budget_function *function = &budget->functions[number];
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

int budget_blind_end(struct budget *budget, uint32_t number, uint64_t now_ns, struct error *err)
{
    struct budget_function *function = &budget->functions[number];
    int r;

    if (function->state == FUNCTION_RECORDED)
        return 0;
    r = end_row(budget, number, now_ns > function->from_ns ? now_ns : function->from_ns + 1, err);
    function->state = FUNCTION_RECORDED;
    return r;
}

int budget_note_over_budget(struct budget *budget, uint32_t number, uint64_t ns, struct error *err)
{
    if (number >= budget->function_count)
        return 0;
    budget_activate(budget, number);
    budget->functions[number].last_missed_ns = ns;
    budget->urgent = true;
    return budget->functions[number].state == FUNCTION_RECORDED
               ? budget_blind_begin(budget, number, FUNCTION_THROTTLED,
                                    streams_realtime(budget->options.streams, ns), err)
               : 0;
}

/* The kernel side is to announce the next call that it leaves out. Then it is counted up to here for good. */
static void take_back(struct budget *budget, uint32_t number, uint64_t now_ns)
{
    for (size_t i = 0; i < budget->probe_count; i++)
        if (budget->probes[i].function == number)
            __atomic_store_n(&budget->slots[i].told, 0, __ATOMIC_SEQ_CST);
    for (size_t i = 0; i < budget->probe_count; i++)
        if (budget->probes[i].function == number)
            read_probe(budget, i, now_ns);
}

static int end_calm(struct budget *budget, uint64_t now_ns, struct error *err)
{
    int r = 0;

    for (size_t i = 0; !r && i < budget->awake.count; i++) {
        uint32_t number = budget->awake.functions[i];
        struct budget_function *function = &budget->functions[number];

        if (function->state == FUNCTION_RECORDED && function->missed != function->missed_reported) {
            /* It was just being taken back. */
            r = budget_note_over_budget(budget, number, now_ns, err);
        } else if (function->state == FUNCTION_THROTTLED && now_ns > function->last_missed_ns + CALM_NS) {
            take_back(budget, number, now_ns);
            r = budget_blind_end(budget, number, streams_realtime(budget->options.streams, now_ns), err);
        }
    }
    return r;
}

/* ------------------------------------------------------------------------------------ looks */

uint64_t budget_own_cpu_ns(void)
{
    struct rusage helpers;
    uint64_t own = clock_ns(CLOCK_PROCESS_CPUTIME_ID);

    if (getrusage(RUSAGE_CHILDREN, &helpers))
        return own;
    return own + 1000 * ((uint64_t)(helpers.ru_utime.tv_usec + helpers.ru_stime.tv_usec) +
                         1000000u * (uint64_t)(helpers.ru_utime.tv_sec + helpers.ru_stime.tv_sec));
}

void budget_mark_effort(struct budget *budget)
{
    budget->effort = (struct budget_effort){
        .own_ns = budget_own_cpu_ns(),
        .target_ns = streams_cpu_ns(budget->options.streams),
        .ns = clock_ns(CLOCK_MONOTONIC),
        .calls = budget->inline_calls + budget->early_calls,
    };
}

double budget_own_work(const struct budget *budget)
{
    uint64_t calls = budget->inline_calls + budget->early_calls - budget->effort.calls;

    return (double)(budget_own_cpu_ns() - budget->effort.own_ns) - budget->costs.read_ns * (double)calls;
}

static void sample_own_work(struct budget *budget, uint64_t now_ns, uint64_t cpu_ns)
{
    const struct budget_effort *since = &budget->effort;
    double used = cpu_ns > since->target_ns ? (double)(cpu_ns - since->target_ns) : 0, took;

    if (now_ns - since->ns < OWN_NS)
        return;
    took = budget_own_work(budget);
    budget->own_share =
        (budget->own_share + budget_own_cost(took, used, (double)(now_ns - since->ns),
                                             budget->contention.part, budget->options.share)) /
        2;
    budget_mark_effort(budget);
}

/* -ENOMEM, or whether a function has to go. */
static int sample_pages(struct budget *budget, uint64_t now_ns)
{
    int r = 0, goes = 0;

    for (size_t i = 0; r >= 0 && i < budget->image_count; i++) {
        struct budget_image *image = &budget->images[i];

        if (image->apart || now_ns - image->switches_ns < PAGES_NS)
            continue;
        r = budget_sample_pages(budget, image, now_ns);
        goes |= r > 0;
    }
    return r < 0 ? r : goes;
}

/* What processes that ran have paid before the recording began, where no processor was idle, is more than
 * what their share was meanwhile. */
static void owe_beginning(struct budget *budget, uint64_t now_ns, uint64_t cpu_ns)
{
    double own = (double)budget_own_cpu_ns() - budget->costs.read_ns * (double)budget->early_calls;
    double used = cpu_ns > budget->begun_cpu_ns ? (double)(cpu_ns - budget->begun_cpu_ns) : 0;
    double part = budget->contention.part * budget_missed_part(used, (double)(now_ns - budget->begun_ns));

    if (budget->attached_running)
        policy_owe(&budget->policy, part * own + (double)budget->early_ns - budget->options.share * used);
}

int budget_sample(struct budget *budget, uint64_t now_ns, struct error *err)
{
    bool alert = budget->urgent || policy_is_alert(&budget->policy, now_ns);
    uint64_t cpu_ns;
    int r, goes;

    if (budget->sampled_ns && now_ns - budget->sampled_ns < (alert ? ALERT_SAMPLE_NS : LOOK_NS))
        return 0;
    cpu_contention_sample(&budget->contention, now_ns);
    cpu_ns = streams_cpu_ns(budget->options.streams);
    budget_scale_trials(budget, cpu_ns);
    read_counts(budget, now_ns);
    if (!budget->sampled_ns)
        owe_beginning(budget, now_ns, cpu_ns);
    budget->sampled_ns = now_ns;
    budget->urgent = false;
    if (budget->relinking && !budget->options.backend->of->closing(budget->options.backend)) {
        budget->relinking = false;
        budget->options.backend->of->relinking(budget->options.backend, false);
    }
    r = end_calm(budget, now_ns, err);
    if (!r)
        r = budget_store_plans(budget, now_ns, err);
    if (r)
        return r;
    goes = sample_pages(budget, now_ns);
    sample_own_work(budget, now_ns, cpu_ns);
    budget->policy.standing = budget->pages_share + budget->own_share;
    r = policy_decide(&budget->policy, budget->awake.units, budget->awake.unit_count, now_ns, cpu_ns);
    if (goes < 0 || r < 0)
        return error_no_memory(err);
    return goes || r || budget_trials_move(budget) ? budget_relink(budget, err) : 0;
}

/* ------------------------------------------------------------------------------------ the end */

static int tag(struct budget *budget, const char *key, int decimals, double value, const char *unit,
               struct error *err)
{
    char text[48];

    snprintf(text, sizeof(text), "%.*f%s", decimals, value, unit);
    return trace_writer_tag(budget->options.writer, key, text, err);
}

/* What was promised, and what it came to. */
static int store_totals(struct budget *budget, struct error *err)
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
    if (!r && budget->early_ns)
        r = tag(budget, "budget: probes took before the recording began (estimate)", 3,
                (double)budget->early_ns / 1e9, " s", err);
    if (!r && budget->inline_calls)
        r = tag(budget, "budget: of that, inline probes (estimate)", 3, (double)budget->inline_ns / 1e9, " s",
                err);
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

int budget_finish(struct budget *budget, struct error *err)
{
    int r = 0;

    read_counts(budget, clock_ns(CLOCK_MONOTONIC));
    r = end_calm(budget, budget->sampled_ns, err);
    for (uint32_t i = 0; !r && i < budget->function_count; i++)
        if (budget->functions[i].state != FUNCTION_RECORDED)
            r = end_row(budget, i, 0, err);
    for (size_t i = 0; !r && i < budget->image_count; i++)
        if (!budget->images[i].apart)
            r = budget_store_plan(budget, budget->images[i].image, true, err);
    return r ? r : store_totals(budget, err);
}

/* ------------------------------------------------------------------------------------ for people */

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
    for (size_t i = 0; i < budget->function_count; i++) {
        const struct budget_function *function = &budget->functions[i];

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
    struct budget_function_status *list = calloc(budget->function_count + 1, sizeof(*list));
    size_t count = 0;

    if (!list)
        return error_no_memory(err);
    for (size_t n = 0; n < budget->image_count; n++) {
        const struct traced_image *image = budget->images[n].image;

        for (size_t i = 0; i < image->function_count; i++) {
            const struct budget_function *function = &budget->functions[image->first_function + i];
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
