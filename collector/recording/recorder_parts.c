/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a recording's options mean to its parts. */
#include "collector/cost/known_costs.h"
#include "collector/launch/privileges.h"
#include "collector/recording/recorder_flight.h"
#include "collector/recording/recorder_state.h"
#include "collector/uprobe/kernel_features.h"

/* A hit in Go's runtime reads a few words of the target, 0.3 us; and in a service all of it takes twice as
 * long as in a loop of hits, since it finds other things in the caches (0.89 us and 1.8 us with etcd). */
#define GO_HIT_READS_NS 300
#define GO_HIT_COLD 2

/* What hits take on this machine, measured a third of a second long or known; where that cannot be measured,
 * what they took elsewhere. */
static struct go_budget calibrate(struct go_budget budget)
{
    const struct site_costs other = SITE_COSTS_DEFAULT;
    struct probe_costs costs = {0};

    if (!(budget.share > 0))
        return budget;
    known_costs(KNOWN_COSTS_FOLDER, &costs);
    budget.emulated_ns = costs.delivers ? (uint32_t)costs.recorded_ns[COST_CALL_BRANCH] : other.call_emulated;
    budget.single_stepped_ns =
        costs.delivers ? (uint32_t)costs.recorded_ns[COST_CALL_SINGLE_STEPPED] : other.call_single_stepped;
    budget.emulated_ns = GO_HIT_COLD * (budget.emulated_ns + GO_HIT_READS_NS);
    budget.single_stepped_ns += GO_HIT_COLD * GO_HIT_READS_NS;
    return budget;
}

/* Of 2^32 - 1, at least one. */
static uint32_t trigger_share(double share)
{
    return share >= 1 ? UINT32_MAX : share * UINT32_MAX < 1 ? 1 : (uint32_t)(share * UINT32_MAX);
}

struct uprobe_options recorder_uprobe_options(const struct recorder_options *options)
{
    return (struct uprobe_options){
        .ring_bytes = options->limits.ring_bytes,
        .budget_ns = options->limits.budget > 0 ? budget_tick_ns(options->limits.budget) : 0,
        .with_time = options->content.times != STREAM_TIMES_NONE,
        .full_time = options->content.times == STREAM_TIMES_FULL,
        .follow_children = options->targets.follow_children,
        .no_hold = options->targets.no_hold,
        .goroutines = options->go.detail != GO_DETAIL_NONE,
        .follows_schedule = options->go.delays,
        .trigger_share = options->trigger.opens ? trigger_share(options->trigger.share) : 0,
        .count_only = options->limits.count_only,
        .sync = options->content.sync,
        .inlined = recorder_has_inline(options),
        .asked = recorder_has_inline(options) && options->probes.waits,
        .returns = options->content.returns == PLAN_RETURNS_PROBE,
        .packed = !options->probes.plain_wire,
        .can_continue_all = !privileges_missing(PRIVILEGE_KILL),
    };
}

struct image_table_options recorder_image_options(const struct recorder_options *options)
{
    bool inlined = options->probes.backend == RECORDER_INLINE;

    return (struct image_table_options){
        .inlined = inlined,
        .not_inlined = recorder_inline_refusal(options),
        .reports_slot_sharing =
            inlined && (options->probes.life_cycle == RECORDER_BY_PTRACE || kernel_reports_slots()),
        .only_inline = options->probes.life_cycle == RECORDER_BY_PTRACE,
        .timed = options->storage.flight && flight_has_functions(options->storage.flight, true) ? flight_times
                                                                                                : NULL,
        .timed_context = options->storage.flight,
        .want_image = options->selected.want_image,
        .want = options->selected.want,
        .asked_name = options->selected.asked_name,
        .context = options->selected.context,
        .returns = options->content.returns,
        .call_sites = options->content.call_sites,
        .goroutines = options->go.detail,
        .go_budget = calibrate(options->go.budget),
        .go_functions = options->go.functions,
        .go_delays = options->go.delays,
    };
}
