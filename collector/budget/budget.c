/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/budget/budget.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "collector/budget/budget_state.h"
#include "collector/budget/stack_profile.h"
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
#define GROUPS 32 /* of an image, at first: of a killed tracectl the kernel removes one after the other */
#define GROUP_SITES 256
#define LIMIT_PART 2 /* one function may take half of what a CPU has saved up */
#define SAVED_TICKS 8

static uint64_t tick_ns(void)
{
    struct timespec tick;

    return clock_getres(CLOCK_MONOTONIC_COARSE, &tick) ? 4000000 : (uint64_t)tick.tv_nsec;
}

uint32_t budget_tick_ns(double share)
{
    double ns = share * (double)tick_ns();

    return ns < 1 ? 1 : (uint32_t)ns;
}

/* What hits take on this machine; where that cannot be measured, what they took elsewhere. */
static struct budget_costs measure(void)
{
    const struct site_costs other = SITE_COSTS_DEFAULT;
    struct probe_costs costs = {0};
    double skipped;

    known_costs(KNOWN_COSTS_FOLDER, &costs);
    if (!costs.delivers)
        return (struct budget_costs){.emulated_ns = COLD * other.call_emulated,
                                     .single_stepped_ns = COLD * other.call_single_stepped,
                                     .return_ns = COLD * other.ret};
    skipped = costs.recorded_ns[COST_CALL_INFERRED] - costs.empty_ns[COST_CALL_EMULATED];
    return (struct budget_costs){
        .emulated_ns = COLD * costs.recorded_ns[COST_CALL_INFERRED],
        .single_stepped_ns = COLD * costs.recorded_ns[COST_CALL_SINGLE_STEPPED],
        .skipped_ns = skipped > 0 ? skipped : 0,
        .return_ns = COLD * costs.recorded_ns[COST_RETURN],
    };
}

int budget_new(const struct budget_options *options, struct budget **ret_budget, struct error *err)
{
    struct budget *budget = calloc(1, sizeof(*budget));

    if (!budget)
        return error_no_memory(err);
    budget->options = *options;
    budget->slots = options->backend->of->counts(options->backend);
    budget->costs = measure();
    budget->costs.inline_ns = INLINE_NS + (options->timed ? INLINE_TIME_NS : 0);
    budget->costs.read_ns = READ_NS;
    cpu_contention_sample(&budget->contention, clock_ns(CLOCK_MONOTONIC));
    policy_start(&budget->policy, options->share);
    *ret_budget = budget;
    return 0;
}

void budget_free(struct budget *budget)
{
    if (!budget)
        return;
    for (size_t i = 0; i < budget->group_count; i++)
        free(budget->groups[i].sites);
    for (size_t i = 0; i < budget->image_count; i++)
        free(budget->images[i].switches);
    free(budget->groups);
    free(budget->images);
    free(budget->marked);
    free(budget->awake.functions);
    free(budget->awake.units);
    free(budget->inline_new);
    free(budget->applied);
    free(budget->units);
    free(budget->functions);
    free(budget->probes);
    free(budget);
}

double budget_share(const struct budget *budget)
{
    return budget ? budget->options.share : 0;
}

/* ------------------------------------------------------------------------------------ new images */

static int reserve(struct budget *budget, size_t probes, size_t functions, struct error *err)
{
    if (array_reserve(&budget->probes, &budget->probe_capacity, probes) ||
        array_reserve(&budget->functions, &budget->function_capacity, functions) ||
        array_reserve(&budget->units, &budget->unit_capacity, functions) ||
        array_reserve(&budget->applied, &budget->applied_capacity, functions) ||
        array_reserve(&budget->marked, &budget->marked_capacity, functions) ||
        array_reserve(&budget->inline_new, &budget->inline_capacity, functions) ||
        array_reserve(&budget->awake.functions, &budget->awake.capacity, functions) ||
        array_reserve(&budget->awake.units, &budget->awake.unit_capacity, functions) ||
        array_reserve(&budget->images, &budget->image_capacity, budget->image_count + 1))
        return error_no_memory(err);
    if (!budget->probe_count) {
        budget->begun_cpu_ns = streams_cpu_ns(budget->options.streams);
        budget->begun_ns = clock_ns(CLOCK_MONOTONIC);
    }
    for (; budget->probe_count < probes; budget->probe_count++)
        budget->probes[budget->probe_count] = (struct budget_probe){.function = NO_FUNCTION};
    for (; budget->function_count < functions; budget->function_count++) {
        size_t number = budget->function_count;

        budget->functions[number] = (struct budget_function){.unit = (uint32_t)number};
        budget->units[number] = (struct probe_unit){0};
        budget->applied[number] = budget->marked[number] = false;
        budget->inline_new[number] = 0;
    }
    budget_activate_none(budget); /* units may lie elsewhere now */
    return 0;
}

/* What a probe costs, and who pays for it. */
static void enrol_probe(struct budget *budget, const struct traced_image *image, size_t i)
{
    const struct plan_probe *planned = &image->plan->probes[i];
    struct budget_slot *slot = &budget->slots[image->first_index + i];
    struct budget_probe *probe = &budget->probes[image->first_index + i];
    double ns = planned->class == SITE_EMULATED ? budget->costs.emulated_ns : budget->costs.single_stepped_ns;
    double saved = (double)budget_tick_ns(budget->options.share) * SAVED_TICKS;

    probe->function = image->first_function + (uint32_t)planned->function;
    probe->missed_ns = (uint32_t)(ns > budget->costs.skipped_ns ? ns - budget->costs.skipped_ns : ns);
    probe->recorded_ns = (uint32_t)(ns + (planned->return_probe ? budget->costs.return_ns : 0));
    probe->is_return = planned->kind == PLAN_AT_RETURN;
    slot->cost_ns = probe->recorded_ns;
    slot->limit = (uint32_t)(saved / LIMIT_PART / (double)probe->recorded_ns) + 1;
    budget->functions[probe->function].probed = true;
}

static void join(struct budget *budget, uint32_t left, uint32_t right)
{
    uint32_t a = budget->functions[left].unit, b = budget->functions[right].unit;
    uint32_t least = a < b ? a : b, other = a < b ? b : a;

    if (a == b)
        return;
    for (size_t i = 0; i < budget->function_count; i++)
        if (budget->functions[i].unit == other)
            budget->functions[i].unit = least;
}

static void enrol_inlined(struct budget *budget, const struct traced_image *image)
{
    for (size_t i = 0; image->inlined && i < image->function_count; i++) {
        struct budget_function *function = &budget->functions[image->first_function + i];

        if (!image->inlined->chosen[i])
            continue;
        function->probed = function->inlined = true;
        budget->units[image->first_function + i].cheap = true;
    }
}

static int enrol(struct budget *budget, struct traced_image *image, struct error *err)
{
    size_t probes = image->first_index + image->plan->count;

    if (probes > MAX_BUDGET_PROBES)
        return error_say(err, -E2BIG, "%s: too many functions for a budget (--budget none, or --functions)",
                         image->path);
    if (reserve(budget, probes, image->first_function + image->function_count, err))
        return -ENOMEM;
    for (size_t i = 0; i < image->plan->count; i++)
        enrol_probe(budget, image, i);
    for (size_t i = 0; i < image->site_count; i++) {
        uint32_t index = (uint32_t)image->cookies[i];

        if (image->cookies[i] & (COOKIE_NEXT_CALL | COOKIE_NEXT_JUMP))
            join(budget, budget->probes[index].function, budget->probes[index + 1].function);
    }
    enrol_inlined(budget, image);
    return 0;
}

int budget_enrol(struct budget *budget, struct traced_image *image, struct error *err)
{
    int r;

    for (size_t i = 0; i < budget->image_count; i++)
        if (budget->images[i].image == image)
            return 0;
    r = enrol(budget, image, err);
    if (r)
        return r;
    budget->images[budget->image_count++] = (struct budget_image){.image = image, .apart = true};
    for (size_t i = 0; i < image->function_count; i++)
        budget->units[image->first_function + i].fixed =
            !budget->functions[image->first_function + i].inlined;
    return 0;
}

/* Functions that seem to be called often wait outside until it is seen what the others take. */
static int let_hot_wait(struct budget *budget, const struct traced_image *image, uint64_t now_ns,
                        struct error *err)
{
    AUTO_FREE uint32_t *heat = calloc(image->function_count + 1, sizeof(*heat));
    int r;

    if (!heat)
        return error_no_memory(err);
    r = stack_profile_sample(image, heat, err);
    for (size_t i = 0; r > 0 && i < image->function_count; i++) {
        uint32_t number = image->first_function + (uint32_t)i;
        struct probe_unit *unit = budget_unit(budget, number);

        budget->functions[number].met |= heat[i] > 0;
        if (heat[i] && budget->functions[number].probed && !budget->functions[number].inlined &&
            (!unit->out || unit->waits))
            policy_let_wait(unit, heat[i] > unit->heat ? heat[i] : unit->heat, now_ns);
    }
    return r < 0 ? r : 0;
}

/* The functions that begin outside are not observed from here on. */
static int begin_outside(struct budget *budget, const struct traced_image *image, struct error *err)
{
    uint64_t now = clock_ns(CLOCK_REALTIME);
    int r = 0;

    for (uint32_t i = 0; !r && i < image->function_count; i++) {
        uint32_t number = image->first_function + i;

        budget->applied[number] = budget->units[number].out;
        if (!budget->functions[number].probed || !budget_unit(budget, number)->out)
            continue;
        r = streams_function_missed(budget->options.streams, number);
        if (!r)
            r = budget_blind_begin(budget, number, FUNCTION_EXCLUDED, now, err);
    }
    return r;
}

/* Makes a group of the places from `first` to before `end` whose functions are in. Where the program runs, it
 * is met. */
static int add_places(struct budget *budget, size_t index, size_t first, size_t end, bool running,
                      struct error *err)
{
    const struct traced_image *image = budget->images[index].image;
    size_t *sites = calloc(end - first, sizeof(*sites)), count = 0;
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    int r;

    if (!sites)
        return error_no_memory(err);
    for (size_t i = first; i < end; i++)
        if (!budget_unit(budget, budget->probes[(uint32_t)image->cookies[i]].function)->out)
            sites[count++] = i;
    r = budget_add_group(budget, index, sites, count, err);
    return !r && count && running ? budget_ramp_up_group(budget, now, err) : r;
}

static int add_groups(struct budget *budget, size_t index, bool running, struct error *err)
{
    const size_t sites = budget->images[index].image->site_count, size = budget->images[index].group_size;
    int r = 0;

    for (size_t first = 0; !r && first < sites; first += size) {
        size_t end = sites - first < size ? sites : first + size, old_groups = budget->group_count;
        double ramp_up_share = budget->ramp_up_share;

        for (size_t at = first, next; !r && at < end; at = next) {
            next = running ? at + budget_piece(budget, size, end - at) : end;
            r = add_places(budget, index, at, next, running, err);
        }
        if (!r && budget->group_count > old_groups + 1)
            r = budget_judge_groups(budget, old_groups, ramp_up_share, err);
    }
    return r;
}

/* Which functions of a program that runs are to begin outside. */
static int choose_initial(struct budget *budget, struct budget_image *image, struct error *err)
{
    int r = budget_sample_pages(budget, image, clock_ns(CLOCK_MONOTONIC));

    if (r >= 0)
        r = let_hot_wait(budget, image->image, clock_ns(CLOCK_MONOTONIC), err);
    if (r >= 0)
        r = budget_sample_pages(budget, image, clock_ns(CLOCK_MONOTONIC));
    return r < 0 ? error_no_memory(err) : 0;
}

int budget_attach(struct budget *budget, struct traced_image *image, bool running, struct error *err)
{
    size_t index = budget->image_count;
    int r;

    if (image->everywhere)
        return 0;
    r = enrol(budget, image, err);
    if (!r)
        r = budget_read_plan(budget, image, clock_ns(CLOCK_MONOTONIC), err);
    if (r)
        return r;
    budget->images[budget->image_count++] = (struct budget_image){
        .image = image,
        .group_size = image->site_count / GROUPS > GROUP_SITES ? image->site_count / GROUPS : GROUP_SITES,
    };
    budget->attached_running |= running;
    r = running ? choose_initial(budget, &budget->images[index], err) : 0;
    if (!r && image->inlined && budget->options.inlined)
        r = budget_change_inline(budget, &budget->images[index], err);
    if (!r)
        r = add_groups(budget, index, running, err);
    if (!r)
        r = begin_outside(budget, image, err);
    budget_mark_effort(budget);
    image->everywhere = !r;
    return r;
}
