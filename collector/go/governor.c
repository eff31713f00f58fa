/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/go/governor.h"

#define BUCKET_NS 1000000000.0 /* so much of the program's time may be saved up for a burst of hits */
#define RECENT_NS 500000000.0  /* what a hit takes of the time is judged by about so much */
#define FIRST_PAUSE_NS 1000000000u
#define LONGEST_PAUSE_NS 64000000000u
#define IDLE_PART 0.5        /* of a CPU: a program that needs less may be taken for one that needs this */
#define HELD_NS 10000000000u /* a step that lasted so long was right */

void go_governor_start(struct go_governor *governor, const struct go_budget *budget, enum go_detail most)
{
    *governor =
        (struct go_governor){.budget = *budget, .detail = most, .most = most, .pause_ns = FIRST_PAUSE_NS};
}

void go_governor_hit(struct go_governor *governor, enum go_detail detail, bool single_stepped)
{
    const struct go_budget *budget = &governor->budget;

    governor->cost_ns[detail] += single_stepped ? budget->single_stepped_ns : budget->emulated_ns;
}

void go_governor_lost(struct go_governor *governor, uint64_t count)
{
    governor->cost_ns[governor->detail] += count * governor->budget.emulated_ns;
}

/* The most detail that stays within the share, up to what there is. */
static enum go_detail affordable(const struct go_governor *governor)
{
    enum go_detail detail = GO_DETAIL_NONE;
    double sum = 0;

    for (enum go_detail next = GO_DETAIL_LIVES; next <= governor->detail; next++) {
        sum += governor->recent_cost_ns[next];
        if (sum > governor->budget.share * governor->recent_own_ns)
            break;
        detail = next;
    }
    return detail;
}

static void step_down(struct go_governor *governor, enum go_detail detail, uint64_t now_ns)
{
    bool failed = governor->raised_ns && now_ns - governor->raised_ns < HELD_NS;

    governor->detail = detail;
    governor->pause_ns = failed ? governor->pause_ns * 2 : FIRST_PAUSE_NS;
    if (governor->pause_ns > LONGEST_PAUSE_NS)
        governor->pause_ns = LONGEST_PAUSE_NS;
    governor->retry_ns = now_ns + governor->pause_ns;
}

static void step_up(struct go_governor *governor, uint64_t now_ns)
{
    governor->detail++;
    governor->recent_cost_ns[governor->detail] = 0;
    governor->raised_ns = now_ns;
    governor->retry_ns = now_ns + FIRST_PAUSE_NS;
}

/* What the hits since the last look took; `keep` is what counts of what was before. */
static double take_costs(struct go_governor *governor, double keep)
{
    double paid = 0;

    for (unsigned i = 0; i < GO_DETAILS; i++) {
        double cost = (double)(governor->cost_ns[i] - governor->seen_cost_ns[i]);

        governor->seen_cost_ns[i] = governor->cost_ns[i];
        governor->recent_cost_ns[i] = keep * governor->recent_cost_ns[i] + cost;
        paid += cost;
    }
    return paid;
}

/* What the program has needed itself since the last look, a part of `elapsed_ns` at least. */
static double take_own(struct go_governor *governor, uint64_t cpu_ns, double elapsed_ns, double paid)
{
    uint64_t seen = governor->seen_cpu_ns;
    double own = seen && cpu_ns > seen ? (double)(cpu_ns - seen) - paid : 0;

    governor->seen_cpu_ns = cpu_ns;
    return own > IDLE_PART * elapsed_ns ? own : IDLE_PART * elapsed_ns;
}

enum go_detail go_governor_decide(struct go_governor *governor, uint64_t now_ns, uint64_t cpu_ns)
{
    double share = governor->budget.share;
    double elapsed = governor->seen_ns ? (double)(now_ns - governor->seen_ns) : 0;
    double keep = elapsed < RECENT_NS ? 1 - elapsed / RECENT_NS : 0;
    double paid = take_costs(governor, keep);
    double own = take_own(governor, cpu_ns, elapsed, paid);
    enum go_detail detail;

    if (!(share > 0))
        return governor->detail;
    governor->seen_ns = now_ns;
    governor->recent_own_ns = keep * governor->recent_own_ns + own;
    governor->bucket_ns += share * own - paid;
    if (governor->bucket_ns > share * BUCKET_NS)
        governor->bucket_ns = share * BUCKET_NS;
    detail = affordable(governor);
    if (governor->bucket_ns < 0 && detail < governor->detail)
        step_down(governor, detail, now_ns);
    else if (governor->bucket_ns > 0 && governor->detail < governor->most && now_ns >= governor->retry_ns)
        step_up(governor, now_ns);
    return governor->detail;
}
