/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ramp-up: a running program gets its probes group by group, and each group is observed before the next one
 * comes.
 *
 * The kernel may need long for a group, and its hits meanwhile are paid whether they are recorded or not. So
 * nothing waits for the recording to begin: hits are counted from the first one on, functions that are called
 * too often are excluded at once, and the next group comes when the target has had the time that makes up for
 * it.
 *
 * The rate of a function is known from the moment on when the whole group has its probes: before that each
 * place has had its own for another time.
 */
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/progress.h"
#include "collector/budget/budget_state.h"

#define STEP_NS 2000000.0
#define REPORT_NS 200000000.0 /* between two reports of a long wait */
#define SPREAD_NS 16e9 /* what the kernel does for a busy program's probes is spread over so much at most */
#define PAUSE_NS 500000000.0   /* after each group: the longest wait for the next */
#define LONGEST_NS 200000000.0 /* to observe a group */
#define IDLE_NS 20000000.0     /* the same while the target is idle: */
#define IDLE_PART 0.02         /* it ran less than that with the group before */
#define RAN_NS 3000000u        /* a group is known when the target has run so long with it */
#define PAID_NS 1000000.0      /* or has paid so much for it */
/* Of the time: a target that has run less counts as having run that much, as children may have that are not
 * known yet. */
#define RAN_PART 0.5
#define PART 8         /* of the budget: a function that costs that much alone is too hot */
#define PART_MOST 1024 /* one that costs less stays */
#define FITS 0.7       /* of the budget: the most that is given away */
#define GROUP_PART 4   /* of what is left of that: for one group */
#define HITS_MIN 8
#define JUDGED_HITS_MIN 2 /* when it has been observed for longer */
/* The kernel needs 30 to 100 us for each place, and until it has them all, it is unknown which are hit. So a
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

void budget_let_run(const struct budget *budget, double ns)
{
    double done = 0, part;

    while (done < ns) {
        part = ns - done < REPORT_NS ? ns - done : REPORT_NS;
        progress("letting the program make up for its probes", done / ns);
        if (!budget_pause(budget, part))
            return;
        done += part;
    }
}

/* attachment_join(): the context is the budget. */
static bool keeps(const void *context, uint32_t function)
{
    return !budget_unit(context, function)->excluded;
}

/* What the hits of a place have cost since the group was complete, or at all when it is not yet. */
static double paid_at(const struct budget *budget, uint32_t index)
{
    uint64_t early = __atomic_load_n(&budget->accounts.slots[index].early, __ATOMIC_RELAXED);

    return (double)(early - budget->accounts.probes[index].early) * budget->accounts.probes[index].missed_ns;
}

static void mark_complete(struct budget *budget, struct probe_group *group)
{
    const struct traced_image *image = group->image;

    group->complete_ns = clock_ns(CLOCK_MONOTONIC);
    group->cpu_ns = streams_cpu_ns(budget->options.streams);
    for (size_t i = 0; i < group->count; i++) {
        uint32_t index = (uint32_t)image->cookies[group->sites[i]];

        budget->accounts.probes[index].early =
            __atomic_load_n(&budget->accounts.slots[index].early, __ATOMIC_RELAXED);
    }
}

static double paid_for(const struct budget *budget, const struct probe_group *group)
{
    const struct traced_image *image = group->image;
    double paid = 0;

    for (size_t i = 0; i < group->count; i++)
        paid += paid_at(budget, (uint32_t)image->cookies[group->sites[i]]);
    return paid;
}

size_t budget_piece(const struct budget *budget, size_t group_size, size_t most)
{
    size_t half = (group_size + 1) / 2;
    bool busy = !budget->ramp_up.is_idle && (!(budget->ramp_up.busy > 0) || budget->ramp_up.busy >= BUSY);

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
static double ran_with(const struct budget *budget, const struct probe_group *group)
{
    double ran = (double)ran_since(budget, group->cpu_ns);
    double least = RAN_PART * (double)(clock_ns(CLOCK_MONOTONIC) - group->complete_ns);

    return ran > least ? ran : least;
}

/* Waits until the group, which is complete, is known. */
static void let_run(struct budget *budget, const struct probe_group *group)
{
    double longest = budget->ramp_up.is_idle ? IDLE_NS : LONGEST_NS, waited;
    uint64_t ran = 0;

    for (waited = 0; waited < longest && ran < RAN_NS && paid_for(budget, group) < PAID_NS;
         waited += STEP_NS) {
        if (!budget_pause(budget, STEP_NS))
            break;
        ran = ran_since(budget, group->cpu_ns);
    }
    budget->ramp_up.is_idle = (double)ran < IDLE_PART * waited;
    budget->ramp_up.busy = (budget->ramp_up.busy + (waited > 0 ? (double)ran / waited : 0)) / 2;
}

/* The cost of the functions of the groups from `first` on that have probes and cost less than `limit` each,
 * both as shares of the target's time. */
static double kept_share(const struct budget *budget, size_t first, double limit)
{
    double kept = 0;

    for (size_t g = first; g < budget->attachment.group_count; g++) {
        const struct probe_group *group = &budget->attachment.groups[g];
        const struct traced_image *image = group->image;
        double ran = ran_with(budget, group);

        for (size_t i = 0; i < group->count; i++) {
            uint32_t index = (uint32_t)image->cookies[group->sites[i]];
            double took = paid_at(budget, index) / ran;

            kept += took < limit && !budget_unit(budget, budget->accounts.probes[index].function)->excluded
                        ? took
                        : 0;
        }
    }
    return kept;
}

/* The cost above which a function is excluded, so that the groups from `first` on have a part of what the
 * ones before them have left of the budget: those cost `before`. */
static double find_limit(struct budget *budget, size_t first, double before)
{
    double share = budget->options.share, limit = share / PART;
    double affordable = (FITS * share - before) / GROUP_PART;

    while (limit > share / PART_MOST && kept_share(budget, first, limit) > affordable)
        limit /= 2;
    budget->ramp_up.share = before + kept_share(budget, first, limit);
    return limit;
}

/* Excludes the functions of a group that cost `limit` or more. Returns whether there are any. */
static bool exclude_hot(struct budget *budget, const struct probe_group *group, double limit,
                        unsigned hits_min)
{
    double ran = ran_with(budget, group);
    const struct traced_image *image = group->image;
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    double elapsed = (double)(now - group->complete_ns);
    bool any = false;

    for (size_t i = 0; i < group->count; i++) {
        uint32_t index = (uint32_t)image->cookies[group->sites[i]];
        double took = paid_at(budget, index);

        if (took < hits_min * budget->accounts.probes[index].missed_ns || took < limit * ran ||
            budget_unit(budget, budget->accounts.probes[index].function)->excluded)
            continue;
        budget_exclude(budget, budget->accounts.probes[index].function,
                       took / budget->accounts.probes[index].missed_ns / elapsed * 1e9, took / elapsed, now);
        any = true;
    }
    return any;
}

/* Lets the program have the time that makes up for a group, which is `part` of all places. It has had `ran`
 * of it; hits have cost `paid`, and the kernel has been busy with its processors for `attached`. */
static void make_up(const struct budget *budget, double part, double attached, double paid, double ran)
{
    double share = budget->options.share, hits = paid > share * ran ? paid / share - ran : 0;
    double spread = SPREAD_NS * part;
    double processors = (double)sysconf(_SC_NPROCESSORS_ONLN), made_up = attached / (share * processors);
    double kernel = budget->ramp_up.is_idle ? 0 : made_up < spread ? made_up : spread;

    if (hits + kernel > 0)
        budget_pause(budget, hits + kernel < PAUSE_NS ? hits + kernel : PAUSE_NS);
}

int budget_ramp_up_group(struct budget *budget, uint64_t from_ns, struct error *err)
{
    size_t number = budget->attachment.group_count - 1;
    struct probe_group *group = &budget->attachment.groups[number];
    double part = (double)group->count / (double)group->image->site_count;
    double paid = paid_for(budget, group), attached, limit, ran;
    bool any;
    int r;

    mark_complete(budget, group);
    attached = (double)(group->complete_ns - from_ns);
    let_run(budget, group);
    limit = find_limit(budget, number, budget->ramp_up.share);
    paid += paid_for(budget, group);
    ran = ran_with(budget, group) + RAN_PART * attached;
    any = exclude_hot(budget, group, limit, HITS_MIN);
    budget->accounts.early_ns += (uint64_t)paid;
    r = any ? attachment_join(&budget->attachment, number, keeps, budget, err) : 0;
    if (!r)
        make_up(budget, part, attached, paid, ran);
    return r;
}

int budget_judge_groups(struct budget *budget, size_t first, double share, struct error *err)
{
    double limit = find_limit(budget, first, share);
    bool any = false;

    for (size_t g = first; g < budget->attachment.group_count; g++)
        any |= exclude_hot(budget, &budget->attachment.groups[g], limit, JUDGED_HITS_MIN);
    return any ? attachment_join(&budget->attachment, first, keeps, budget, err) : 0;
}
