/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A sample: reads the accounts, asks the policy, and moves probes where it has decided so. */
#include "base/clock.h"
#include "base/error.h"
#include "collector/budget/budget_state.h"

#define SAMPLE_NS 50000000u
#define ALERT_SAMPLE_NS 20000000u
#define PAGES_NS 5000000000u

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
    double own =
        (double)own_work_cpu_ns() - budget->accounts.costs.read_ns * (double)budget->accounts.early_calls;
    double used = cpu_ns > budget->ramp_up.begun_cpu_ns ? (double)(cpu_ns - budget->ramp_up.begun_cpu_ns) : 0;
    double part = budget->accounts.contention.part *
                  own_work_missed_part(used, (double)(now_ns - budget->ramp_up.begun_ns));

    if (budget->ramp_up.running)
        policy_owe(&budget->policy,
                   part * own + (double)budget->accounts.early_ns - budget->options.share * used);
}

int budget_sample(struct budget *budget, uint64_t now_ns, struct error *err)
{
    bool alert = budget->urgent || policy_is_alert(&budget->policy, now_ns), is_first;
    uint64_t cpu_ns;
    int r, goes;

    if (budget->accounts.sampled_ns &&
        now_ns - budget->accounts.sampled_ns < (alert ? ALERT_SAMPLE_NS : SAMPLE_NS))
        return 0;
    cpu_contention_sample(&budget->accounts.contention, now_ns);
    cpu_ns = streams_cpu_ns(budget->options.streams);
    budget_scale_trials(budget, cpu_ns);
    is_first = !budget->accounts.sampled_ns;
    accounts_sample(&budget->accounts, now_ns);
    if (is_first)
        owe_beginning(budget, now_ns, cpu_ns);
    budget->urgent = false;
    attachment_poll(&budget->attachment);
    r = budget_end_calm_gaps(budget, now_ns, err);
    if (!r)
        r = budget_store_plans(budget, now_ns, err);
    if (r)
        return r;
    goes = sample_pages(budget, now_ns);
    accounts_sample_work(&budget->accounts, now_ns, cpu_ns, budget->options.share);
    budget->policy.standing = budget->pages_share + budget->accounts.work.share;
    r = policy_decide(&budget->policy, budget->accounts.active.units, budget->accounts.active.unit_count,
                      now_ns, cpu_ns);
    if (goes < 0 || r < 0)
        return error_no_memory(err);
    return goes || r || budget_trials_move(budget) ? budget_relink(budget, err) : 0;
}

int budget_finish(struct budget *budget, struct error *err)
{
    uint64_t sampled_ns = budget->accounts.sampled_ns;
    int r;

    accounts_sample(&budget->accounts, clock_ns(CLOCK_MONOTONIC));
    r = budget_end_calm_gaps(budget, sampled_ns, err);
    if (!r)
        r = budget_close_gaps(budget, err);
    for (size_t i = 0; !r && i < budget->image_count; i++)
        if (!budget->images[i].apart)
            r = budget_store_plan(budget, budget->images[i].image, true, err);
    return r ? r : budget_store_totals(budget, err);
}

void budget_inline_calls(struct budget *budget, const struct agent_record *records, size_t count)
{
    accounts_inline_calls(&budget->accounts, records, count);
}

void budget_inline_lost(struct budget *budget, uint64_t calls)
{
    accounts_inline_lost(&budget->accounts, calls);
}
