/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Probes are put into a program that runs: group by group, each looked at before the next one comes.
 *
 * The kernel may need long for a group, and what is hit meanwhile is paid whether it is recorded or not. So
 * nothing waits for the recording to begin: the hits are counted from the first one on, whoever is called too
 * often goes at once, and the next group comes when the target has had the time that makes up for it.
 */
#include <time.h>

#include "base/clock.h"
#include "collector/govern/budget_state.h"

#define LOOK_NS 4000000u /* so long a group is looked at */
#define PART 8           /* of the budget: who takes that much alone is too hot */
#define HITS_MIN 8
#define PAUSE_NS 200000000.0 /* nobody waits longer for a recording to begin, after each group */

static void pause_for(double ns)
{
    const struct timespec time = {.tv_nsec = (long)(ns < PAUSE_NS ? ns : PAUSE_NS)};

    nanosleep(&time, NULL);
}

/* What the hits of a place have taken. */
static double paid_at(const struct budget *budget, uint32_t index)
{
    uint64_t early = __atomic_load_n(&budget->slots[index].early, __ATOMIC_RELAXED);

    return (double)early * budget->probes[index].missed_ns;
}

int budget_meet_group(struct budget *budget, uint64_t from_ns, struct error *err)
{
    const struct budget_group *group = &budget->groups[budget->group_count - 1];
    const struct traced_image *image = budget->images[group->image].image;
    double elapsed, paid = 0;
    bool any = false;
    uint64_t now;

    pause_for(LOOK_NS);
    now = clock_ns(CLOCK_MONOTONIC);
    elapsed = (double)(now - from_ns);
    for (size_t i = 0; i < group->count; i++) {
        uint32_t index = (uint32_t)image->cookies[group->sites[i]];
        struct govern_unit *unit = budget_unit(budget, budget->probes[index].function);
        double took = paid_at(budget, index);

        paid += took;
        if (unit->out || took < HITS_MIN * budget->probes[index].missed_ns ||
            took < budget->options.share * elapsed / PART)
            continue;
        governor_expect_hot(unit, took / elapsed, now);
        budget->functions[budget->probes[index].function].recent_calls =
            took / budget->probes[index].missed_ns * 1e9 / elapsed;
        budget->functions[budget->probes[index].function].recent_span_ns = 1e9;
        any = true;
    }
    budget->early_ns += (uint64_t)paid;
    if (any) {
        int r = budget_thin_group(budget, err);

        if (r)
            return r;
    }
    if (paid > budget->options.share * elapsed)
        pause_for(paid / budget->options.share - elapsed);
    return 0;
}
