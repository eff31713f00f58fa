/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Probes are put into a program that runs: group by group, each looked at before the next one comes.
 *
 * The kernel may need long for a group, and what is hit meanwhile is paid whether it is recorded or not. So
 * nothing waits for the recording to begin: the hits are counted from the first one on, whoever is called too
 * often goes at once, and the next group comes when the target has had the time that makes up for it.
 *
 * How often a function is called is seen from the moment on when the whole group has its probes: before that
 * each place has had its own for another time.
 */
#include <poll.h>
#include <time.h>

#include "base/clock.h"
#include "collector/govern/budget_state.h"

#define STEP_NS 2000000.0
#define PAUSE_NS 200000000.0   /* after each group: nobody waits longer for a recording to begin */
#define LONGEST_NS 200000000.0 /* and to know a group */
#define IDLE_NS 20000000.0     /* the same while the target is idle: */
#define IDLE_PART 0.02         /* it ran less than that with the group before */
#define RAN_NS 3000000u        /* it is known when the target has run so long with it */
#define PAID_NS 1000000.0      /* or has paid so much for it */
/* Of the time: a target that has run less is taken to have run that much, as children may have that nobody
 * knows yet. */
#define RAN_PART 0.5
#define PART 8         /* of the budget: who takes that much alone is too hot */
#define PART_MOST 1024 /* who takes less than that stays */
#define FITS 0.7       /* of the budget: the most that is given away */
#define ROOM_PART 4    /* of what is left: for one group */
#define HITS_MIN 8

/* False: the recording is to end. */
static bool pause_for(const struct budget *budget, double ns)
{
    const struct timespec time = {.tv_nsec = (long)(ns < PAUSE_NS ? ns : PAUSE_NS)};
    struct pollfd stop = {.fd = budget->options.stop, .events = POLLIN};

    return ppoll(&stop, 1, &time, NULL) <= 0;
}

/* What the hits of a place have taken since the group was complete, or at all when it is not yet. */
static double paid_at(const struct budget *budget, uint32_t index)
{
    uint64_t early = __atomic_load_n(&budget->slots[index].early, __ATOMIC_RELAXED);

    return (double)(early - budget->probes[index].early) * budget->probes[index].missed_ns;
}

static void mark_complete(struct budget *budget, const struct budget_group *group)
{
    const struct traced_image *image = budget->images[group->image].image;

    for (size_t i = 0; i < group->count; i++) {
        uint32_t index = (uint32_t)image->cookies[group->sites[i]];

        budget->probes[index].early = __atomic_load_n(&budget->slots[index].early, __ATOMIC_RELAXED);
    }
}

static double paid_for(const struct budget *budget, const struct budget_group *group)
{
    const struct traced_image *image = budget->images[group->image].image;
    double paid = 0;

    for (size_t i = 0; i < group->count; i++)
        paid += paid_at(budget, (uint32_t)image->cookies[group->sites[i]]);
    return paid;
}

/* Waits until the group, which is complete, is known. Returns how long the target has run with it. */
static double let_run(struct budget *budget, const struct budget_group *group)
{
    uint64_t from_ns = clock_ns(CLOCK_MONOTONIC), cpu = streams_cpu_ns(budget->options.streams), ran = 0;
    double longest = budget->is_idle ? IDLE_NS : LONGEST_NS, waited, least;

    for (waited = 0; waited < longest && ran < RAN_NS && paid_for(budget, group) < PAID_NS;
         waited += STEP_NS) {
        if (!pause_for(budget, STEP_NS))
            break;
        ran = streams_cpu_ns(budget->options.streams) - cpu;
    }
    budget->is_idle = (double)ran < IDLE_PART * waited;
    least = RAN_PART * (double)(clock_ns(CLOCK_MONOTONIC) - from_ns);
    return (double)ran > least ? (double)ran : least;
}

/* What those of the group take that take less than `limit` each, both as shares of the target's time. */
static double kept_share(const struct budget *budget, const struct budget_group *group, double ran,
                         double limit)
{
    const struct traced_image *image = budget->images[group->image].image;
    double kept = 0;

    for (size_t i = 0; i < group->count; i++) {
        double took = paid_at(budget, (uint32_t)image->cookies[group->sites[i]]) / ran;

        kept += took < limit ? took : 0;
    }
    return kept;
}

/* The group may have a part of what the ones before it have left of the budget. */
static double find_limit(struct budget *budget, const struct budget_group *group, double ran)
{
    double share = budget->options.share, limit = share / PART;
    double room = (FITS * share - budget->met_share) / ROOM_PART;

    while (limit > share / PART_MOST && kept_share(budget, group, ran, limit) > room)
        limit /= 2;
    budget->met_share += kept_share(budget, group, ran, limit);
    return limit;
}

/* The function at a place is out; `took`: what its hits have, `elapsed` how long. */
static void leave_out(struct budget *budget, uint32_t index, double took, double elapsed, uint64_t now)
{
    struct budget_function *function = &budget->functions[budget->probes[index].function];

    function->recent_calls = took / budget->probes[index].missed_ns * 1e9 / elapsed;
    function->recent_span_ns = 1e9;
    governor_expect_hot(budget_unit(budget, budget->probes[index].function), took / elapsed, now);
}

int budget_meet_group(struct budget *budget, uint64_t from_ns, struct error *err)
{
    const struct budget_group *group = &budget->groups[budget->group_count - 1];
    const struct traced_image *image = budget->images[group->image].image;
    uint64_t complete = clock_ns(CLOCK_MONOTONIC), now;
    double paid = paid_for(budget, group), ran, limit;
    bool any = false;
    int r;

    mark_complete(budget, group);
    ran = let_run(budget, group);
    now = clock_ns(CLOCK_MONOTONIC);
    limit = find_limit(budget, group, ran);
    paid += paid_for(budget, group);
    for (size_t i = 0; i < group->count; i++) {
        uint32_t index = (uint32_t)image->cookies[group->sites[i]];
        double took = paid_at(budget, index);

        if (took < HITS_MIN * budget->probes[index].missed_ns || took < limit * ran)
            continue;
        leave_out(budget, index, took, (double)(now - complete), now);
        any = true;
    }
    budget->early_ns += (uint64_t)paid;
    r = any ? budget_thin_group(budget, err) : 0;
    ran += RAN_PART * (double)(complete - from_ns);
    if (!r && paid > budget->options.share * ran)
        pause_for(budget, paid / budget->options.share - ran);
    return r;
}
