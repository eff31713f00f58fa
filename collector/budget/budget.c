/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/budget/budget.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/progress.h"
#include "collector/budget/budget_state.h"
#include "collector/budget/stack_profile.h"

#define GROUPS 32 /* of an image, at first: of a killed tracectl the kernel removes one after the other */
#define GROUP_SITES 256

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

int budget_new(const struct budget_options *options, struct budget **ret_budget, struct error *err)
{
    struct budget *budget = calloc(1, sizeof(*budget));

    if (!budget)
        return error_no_memory(err);
    budget->options = *options;
    accounts_init(&budget->accounts, options->backend->of->counts(options->backend), options->timed);
    budget->attachment = (struct attachment){.backend = options->backend,
                                             .slots = budget->accounts.slots,
                                             .before_close = budget_before_close,
                                             .context = budget};
    policy_start(&budget->policy, options->share);
    *ret_budget = budget;
    return 0;
}

void budget_free(struct budget *budget)
{
    if (!budget)
        return;
    attachment_release(&budget->attachment);
    for (size_t i = 0; i < budget->image_count; i++)
        free(budget->images[i].switches);
    free(budget->images);
    free(budget->marked);
    free(budget->away);
    accounts_release(&budget->accounts);
    free(budget);
}

double budget_share(const struct budget *budget)
{
    return budget ? budget->options.share : 0;
}

/* ------------------------------------------------------------------------------------ new images */

static int enrol(struct budget *budget, struct traced_image *image, struct error *err)
{
    size_t functions = image->first_function + image->function_count,
           before = budget->accounts.function_count;

    if (image->first_index + image->plan->count > MAX_BUDGET_PROBES)
        return error_say(err, -E2BIG,
                         "%s: too many functions for a budget (use --budget none, or select "
                         "fewer with --functions)",
                         image->path);
    if (!budget->accounts.probe_count) {
        budget->ramp_up.begun_cpu_ns = streams_cpu_ns(budget->options.streams);
        budget->ramp_up.begun_ns = clock_ns(CLOCK_MONOTONIC);
    }
    if (array_reserve(&budget->away, &budget->away_capacity, functions) ||
        array_reserve(&budget->marked, &budget->marked_capacity, functions) ||
        array_reserve(&budget->images, &budget->image_capacity, budget->image_count + 1) ||
        accounts_add_image(&budget->accounts, image, budget_tick_ns(budget->options.share)))
        return error_no_memory(err);
    for (size_t i = before; i < functions; i++)
        budget->away[i] = budget->marked[i] = false;
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
        budget->accounts.units[image->first_function + i].fixed =
            !budget->accounts.functions[image->first_function + i].inlined;
    return 0;
}

/* Functions that seem to be called often wait until the cost of the others is known. */
static int let_hot_wait(struct budget *budget, const struct traced_image *image, uint64_t now_ns,
                        struct error *err)
{
    AUTO_FREE uint32_t *samples = calloc(image->function_count + 1, sizeof(*samples));
    int r;

    if (!samples)
        return error_no_memory(err);
    r = stack_profile_sample(image, samples, err);
    for (size_t i = 0; r > 0 && i < image->function_count; i++) {
        uint32_t number = image->first_function + (uint32_t)i;
        struct probe_unit *unit = budget_unit(budget, number);

        budget->accounts.functions[number].profiled |= samples[i] > 0;
        if (samples[i] && budget->accounts.functions[number].probed &&
            !budget->accounts.functions[number].inlined && (!unit->excluded || unit->waits))
            policy_let_wait(unit, samples[i] > unit->profile_samples ? samples[i] : unit->profile_samples,
                            now_ns);
    }
    return r < 0 ? r : 0;
}

/* The functions that begin excluded are not recorded from here on. */
static int begin_excluded(struct budget *budget, const struct traced_image *image, struct error *err)
{
    uint64_t now = clock_ns(CLOCK_REALTIME);
    int r = 0;

    for (uint32_t i = 0; !r && i < image->function_count; i++) {
        uint32_t number = image->first_function + i;

        budget->away[number] = budget->accounts.units[number].excluded;
        if (!budget->accounts.functions[number].probed || !budget_unit(budget, number)->excluded)
            continue;
        r = streams_function_missed(budget->options.streams, number);
        if (!r)
            r = budget_gap_begin(budget, number, FUNCTION_EXCLUDED, now, err);
    }
    return r;
}

/* Makes a group of the places from `first` to before `end` whose functions are not excluded. Where the
 * program runs, it is observed. */
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
        if (!budget_unit(budget, attachment_function(image, i))->excluded)
            sites[count++] = i;
    r = attachment_add(&budget->attachment, image, budget->images[index].group_size, sites, count, err);
    return !r && count && running ? budget_ramp_up_group(budget, now, err) : r;
}

static int add_groups(struct budget *budget, size_t index, bool running, struct error *err)
{
    const size_t sites = budget->images[index].image->site_count, size = budget->images[index].group_size;
    int r = 0;

    for (size_t first = 0; !r && first < sites; first += size) {
        size_t end = sites - first < size ? sites : first + size, old_groups = budget->attachment.group_count;
        double share_before = budget->ramp_up.share;

        for (size_t at = first, next; !r && at < end; at = next) {
            progress("placing probes", (double)at / (double)sites);
            next = running ? at + budget_piece(budget, size, end - at) : end;
            r = add_places(budget, index, at, next, running, err);
        }
        if (!r && budget->attachment.group_count > old_groups + 1)
            r = budget_judge_groups(budget, old_groups, share_before, err);
    }
    return r;
}

/* Which functions of a program that runs are to begin excluded. */
static int choose_initial(struct budget *budget, struct budget_image *image, struct error *err)
{
    int r = budget_sample_pages(budget, image, clock_ns(CLOCK_MONOTONIC));

    progress("finding out which functions are called often", PROGRESS_UNKNOWN);
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
    budget->ramp_up.running |= running;
    r = running ? choose_initial(budget, &budget->images[index], err) : 0;
    if (!r && image->inlined && budget->options.inlined)
        r = budget_change_inline(budget, &budget->images[index], err);
    if (!r)
        r = add_groups(budget, index, running, err);
    if (!r)
        r = begin_excluded(budget, image, err);
    accounts_mark_work(&budget->accounts, streams_cpu_ns(budget->options.streams));
    image->everywhere = !r;
    return r;
}
