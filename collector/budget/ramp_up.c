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
#include <unistd.h>

#include "base/clock.h"
#include "collector/budget/budget_state.h"

#define STEP_NS 2000000.0
#define SPREAD_NS 16e9 /* what the kernel does for a busy program's probes is spread over so much at most */
#define PAUSE_NS 500000000.0   /* after each group: nobody waits longer for the next */
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
#define SETTLED_HITS_MIN 2 /* when it has been watched for longer */
/* The kernel needs 30 to 100 us for each place, and until it has them all, nobody knows which are hit. So a
 * program that keeps half a processor busy gets a group in two halves. (64 places at once took PostgreSQL
 * more altogether: they are to become groups again, since of a killed tracectl the kernel removes one after
 * the other, and so are moved twice.) */
#define BUSY 0.5

bool budget_pause(const struct budget *budget, double ns)
{
    const uint64_t whole = (uint64_t)ns;
    const struct timespec time = {.tv_sec = (time_t)(whole / 1000000000u),
                                  .tv_nsec = (long)(whole % 1000000000u)};
    struct pollfd stop = {.fd = budget->options.stop, .events = POLLIN};

    return ppoll(&stop, 1, &time, NULL) <= 0;
}

/* What the hits of a place have taken since the group was complete, or at all when it is not yet. */
static double paid_at(const struct budget *budget, uint32_t index)
{
    uint64_t early = __atomic_load_n(&budget->slots[index].early, __ATOMIC_RELAXED);

    return (double)(early - budget->probes[index].early) * budget->probes[index].missed_ns;
}

static void mark_complete(struct budget *budget, struct budget_group *group)
{
    const struct traced_image *image = budget->images[group->image].image;

    group->complete_ns = clock_ns(CLOCK_MONOTONIC);
    group->cpu_ns = streams_cpu_ns(budget->options.streams);
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

size_t budget_piece(const struct budget *budget, size_t group_size, size_t most)
{
    size_t half = (group_size + 1) / 2;
    bool busy = !budget->is_idle && (!(budget->busy > 0) || budget->busy >= BUSY);

    return busy && most > half ? half : most;
}

/* How much the target has run since it had used `cpu_ns`; a process that has ended takes what it had used
 * along. */
static uint64_t ran_since(const struct budget *budget, uint64_t cpu_ns)
{
    uint64_t now = streams_cpu_ns(budget->options.streams);

    return now > cpu_ns ? now - cpu_ns : 0;
}

/* How long the target has run with a group since that was complete. */
static double ran_with(const struct budget *budget, const struct budget_group *group)
{
    double ran = (double)ran_since(budget, group->cpu_ns);
    double least = RAN_PART * (double)(clock_ns(CLOCK_MONOTONIC) - group->complete_ns);

    return ran > least ? ran : least;
}

/* Waits until the group, which is complete, is known. */
static void let_run(struct budget *budget, const struct budget_group *group)
{
    double longest = budget->is_idle ? IDLE_NS : LONGEST_NS, waited;
    uint64_t ran = 0;

    for (waited = 0; waited < longest && ran < RAN_NS && paid_for(budget, group) < PAID_NS;
         waited += STEP_NS) {
        if (!budget_pause(budget, STEP_NS))
            break;
        ran = ran_since(budget, group->cpu_ns);
    }
    budget->is_idle = (double)ran < IDLE_PART * waited;
    budget->busy = (budget->busy + (waited > 0 ? (double)ran / waited : 0)) / 2;
}

/* What those of the groups from `first` on take that are in and take less than `limit` each, both as shares
 * of the target's time. */
static double kept_share(const struct budget *budget, size_t first, double limit)
{
    double kept = 0;

    for (size_t g = first; g < budget->group_count; g++) {
        const struct budget_group *group = &budget->groups[g];
        const struct traced_image *image = budget->images[group->image].image;
        double ran = ran_with(budget, group);

        for (size_t i = 0; i < group->count; i++) {
            uint32_t index = (uint32_t)image->cookies[group->sites[i]];
            double took = paid_at(budget, index) / ran;

            kept += took < limit && !budget_unit(budget, budget->probes[index].function)->out ? took : 0;
        }
    }
    return kept;
}

/* The groups from `first` on may have a part of what the ones before them have left of the budget, which took
 * `ramp_up_share`. */
static double find_limit(struct budget *budget, size_t first, double ramp_up_share)
{
    double share = budget->options.share, limit = share / PART;
    double room = (FITS * share - ramp_up_share) / ROOM_PART;

    while (limit > share / PART_MOST && kept_share(budget, first, limit) > room)
        limit /= 2;
    budget->ramp_up_share = ramp_up_share + kept_share(budget, first, limit);
    return limit;
}

/* Those of a group are out that take `limit` or more. Returns whether any is. */
static bool exclude_hot(struct budget *budget, const struct budget_group *group, double limit,
                        unsigned hits_min)
{
    double ran = ran_with(budget, group);
    const struct traced_image *image = budget->images[group->image].image;
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    double elapsed = (double)(now - group->complete_ns);
    bool any = false;

    for (size_t i = 0; i < group->count; i++) {
        uint32_t index = (uint32_t)image->cookies[group->sites[i]];
        double took = paid_at(budget, index);

        if (took < hits_min * budget->probes[index].missed_ns || took < limit * ran ||
            budget_unit(budget, budget->probes[index].function)->out)
            continue;
        budget_exclude(budget, budget->probes[index].function,
                       took / budget->probes[index].missed_ns / elapsed * 1e9, took / elapsed, now);
        any = true;
    }
    return any;
}

/* Lets the program have the time that makes up for a group, which is `part` of all places. It has had `ran`
 * of it; hits have taken `paid`, and the kernel has been busy with its processors for `attached`. */
static void make_up(const struct budget *budget, double part, double attached, double paid, double ran)
{
    double share = budget->options.share, hits = paid > share * ran ? paid / share - ran : 0;
    double spread = SPREAD_NS * part;
    double processors = (double)sysconf(_SC_NPROCESSORS_ONLN), made_up = attached / (share * processors);
    double kernel = budget->is_idle ? 0 : made_up < spread ? made_up : spread;

    if (hits + kernel > 0)
        budget_pause(budget, hits + kernel < PAUSE_NS ? hits + kernel : PAUSE_NS);
}

int budget_ramp_up_group(struct budget *budget, uint64_t from_ns, struct error *err)
{
    size_t number = budget->group_count - 1;
    struct budget_group *group = &budget->groups[number];
    double part = (double)group->count / (double)budget->images[group->image].image->site_count;
    double paid = paid_for(budget, group), attached, limit, ran;
    bool any;
    int r;

    mark_complete(budget, group);
    attached = (double)(group->complete_ns - from_ns);
    let_run(budget, group);
    limit = find_limit(budget, number, budget->ramp_up_share);
    paid += paid_for(budget, group);
    ran = ran_with(budget, group) + RAN_PART * attached;
    any = exclude_hot(budget, group, limit, HITS_MIN);
    budget->early_ns += (uint64_t)paid;
    r = any ? budget_join_groups(budget, number, err) : 0;
    if (!r)
        make_up(budget, part, attached, paid, ran);
    return r;
}

int budget_judge_groups(struct budget *budget, size_t first, double ramp_up_share, struct error *err)
{
    double limit = find_limit(budget, first, ramp_up_share);
    bool any = false;

    for (size_t g = first; g < budget->group_count; g++)
        any |= exclude_hot(budget, &budget->groups[g], limit, SETTLED_HITS_MIN);
    return any ? budget_join_groups(budget, first, err) : 0;
}
