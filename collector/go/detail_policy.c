/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/go/detail_policy.h"

#define BUCKET_NS 1000000000.0 /* so much of the program's time may be saved up for a burst of hits */
#define RECENT_NS 500000000.0  /* what a hit takes of the time is judged by about so much */
#define FIRST_PAUSE_NS 1000000000u
#define LONGEST_PAUSE_NS 64000000000u
#define IDLE_PART 0.5        /* of a CPU: a program that needs less may be taken for one that needs this */
#define HELD_NS 10000000000u /* a step that lasted so long was right */

void go_detail_policy_start(struct go_detail_policy *policy, const struct go_budget *budget,
                            enum go_detail most)
{
    *policy = (struct go_detail_policy){
        .budget = *budget, .detail = most, .most = most, .pause_ns = FIRST_PAUSE_NS};
}

void go_detail_policy_hit(struct go_detail_policy *policy, enum go_detail detail, bool single_stepped)
{
    const struct go_budget *budget = &policy->budget;

    policy->cost_ns[detail] += single_stepped ? budget->single_stepped_ns : budget->emulated_ns;
}

void go_detail_policy_lost(struct go_detail_policy *policy, uint64_t count)
{
    policy->cost_ns[policy->detail] += count * policy->budget.emulated_ns;
}

/* The most detail that stays within the share, up to what there is. */
static enum go_detail affordable(const struct go_detail_policy *policy)
{
    enum go_detail detail = GO_DETAIL_NONE;
    double sum = 0;

    for (enum go_detail next = GO_DETAIL_LIVES; next <= policy->detail; next++) {
        sum += policy->recent_cost_ns[next];
        if (sum > policy->budget.share * policy->recent_own_ns)
            break;
        detail = next;
    }
    return detail;
}

static void step_down(struct go_detail_policy *policy, enum go_detail detail, uint64_t now_ns)
{
    bool failed = policy->raised_ns && now_ns - policy->raised_ns < HELD_NS;

    policy->detail = detail;
    policy->pause_ns = failed ? policy->pause_ns * 2 : FIRST_PAUSE_NS;
    if (policy->pause_ns > LONGEST_PAUSE_NS)
        policy->pause_ns = LONGEST_PAUSE_NS;
    policy->retry_ns = now_ns + policy->pause_ns;
}

static void step_up(struct go_detail_policy *policy, uint64_t now_ns)
{
    policy->detail++;
    policy->recent_cost_ns[policy->detail] = 0;
    policy->raised_ns = now_ns;
    policy->retry_ns = now_ns + FIRST_PAUSE_NS;
}

/* What the hits since the last look took; `keep` is what counts of what was before. */
static double take_costs(struct go_detail_policy *policy, double keep)
{
    double paid = 0;

    for (unsigned i = 0; i < GO_DETAILS; i++) {
        double cost = (double)(policy->cost_ns[i] - policy->seen_cost_ns[i]);

        policy->seen_cost_ns[i] = policy->cost_ns[i];
        policy->recent_cost_ns[i] = keep * policy->recent_cost_ns[i] + cost;
        paid += cost;
    }
    return paid;
}

/* What the program has needed itself since the last look, a part of `elapsed_ns` at least. */
static double take_own(struct go_detail_policy *policy, uint64_t cpu_ns, double elapsed_ns, double paid)
{
    uint64_t seen = policy->seen_cpu_ns;
    double own = seen && cpu_ns > seen ? (double)(cpu_ns - seen) - paid : 0;

    policy->seen_cpu_ns = cpu_ns;
    return own > IDLE_PART * elapsed_ns ? own : IDLE_PART * elapsed_ns;
}

enum go_detail go_detail_policy_decide(struct go_detail_policy *policy, uint64_t now_ns, uint64_t cpu_ns)
{
    double share = policy->budget.share;
    double elapsed = policy->seen_ns ? (double)(now_ns - policy->seen_ns) : 0;
    double keep = elapsed < RECENT_NS ? 1 - elapsed / RECENT_NS : 0;
    double paid = take_costs(policy, keep);
    double own = take_own(policy, cpu_ns, elapsed, paid);
    enum go_detail detail;

    if (!(share > 0))
        return policy->detail;
    policy->seen_ns = now_ns;
    policy->recent_own_ns = keep * policy->recent_own_ns + own;
    policy->bucket_ns += share * own - paid;
    if (policy->bucket_ns > share * BUCKET_NS)
        policy->bucket_ns = share * BUCKET_NS;
    detail = affordable(policy);
    if (policy->bucket_ns < 0 && detail < policy->detail)
        step_down(policy, detail, now_ns);
    else if (policy->bucket_ns > 0 && policy->detail < policy->most && now_ns >= policy->retry_ns)
        step_up(policy, now_ns);
    return policy->detail;
}
