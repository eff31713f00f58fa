/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/budget/policy.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/debug.h"

#define SECOND_NS 1000000000.0
#define BUCKET_NS 500000000.0 /* so much of the target's time may be saved up for a burst of hits */
#define DEBT_NS 4000000000.0  /* and so much is paid back at most */
#define START_NS 100000000.0  /* so much is there in the beginning */
#define RECENT_NS 500000000.0 /* the span over which the cost of a unit is judged */
#define FITS 0.7              /* of the share: what is kept when something is excluded */
#define ROOM 0.5              /* of what can be saved up: with less there is no trial */
#define OWN_PART 0.1          /* of what the target uses is its own at least: the costs are estimates */
#define IDLE_PART 0.1         /* of a CPU: a target that needs less is taken for one that needs this */
#define FIRST_PAUSE_NS 1000000000u
#define LONGEST_PAUSE_NS 64000000000u
#define TRIAL_NS 1000000000u  /* a unit that was in for so long has passed */
#define HELD_NS 10000000000u  /* and has calmed down permanently when it had probes for so long */
#define EXPOSED_NS 50000000.0 /* a unit has probes for so long before it shows that it has to go */
#define PACE_NS 100000000u    /* between batches of those that wait */
#define BATCH_MAX 1024u
#define NEXT_TO_NOTHING 0.01 /* of the share */
#define MUCH_COOLER 8  /* times: a unit that costs less than the hottest by that waits for the next sample */
#define CHEAP_PAUSES 8 /* a cheap unit is excluded for so much longer: moving it stops the target */

void policy_start(struct budget_policy *policy, double share)
{
    *policy = (struct budget_policy){.share = share, .bucket_ns = share * START_NS, .batch = 1};
}

void policy_expect_hot(struct probe_unit *unit, double expected, uint64_t now_ns)
{
    unit->excluded = true;
    unit->waits = false;
    unit->expected = expected;
    unit->pause_ns = 8 * (uint64_t)FIRST_PAUSE_NS;
    unit->changed_ns = now_ns;
    unit->retry_ns = now_ns + unit->pause_ns;
}

void policy_let_wait(struct probe_unit *unit, uint32_t profile_samples, uint64_t now_ns)
{
    unit->excluded = unit->waits = true;
    unit->profile_samples = profile_samples;
    unit->changed_ns = unit->retry_ns = now_ns;
}

void policy_keep_excluded(struct probe_unit *unit, uint64_t now_ns)
{
    unit->excluded = true;
    unit->trial = false;
    unit->pause_ns = LONGEST_PAUSE_NS;
    unit->changed_ns = now_ns;
    unit->retry_ns = now_ns + unit->pause_ns;
}

bool policy_exclude_page(struct probe_unit *unit, bool page_excluded, uint64_t now_ns)
{
    bool was_in = !unit->excluded;

    unit->page_excluded = page_excluded;
    if (!page_excluded || !was_in)
        return false;
    unit->excluded = true;
    unit->trial = false;
    unit->expected = 0;
    unit->changed_ns = unit->retry_ns = now_ns;
    return true;
}

bool policy_is_alert(const struct budget_policy *policy, uint64_t now_ns)
{
    return !policy->seen_ns || policy->bucket_ns < 0 || now_ns - policy->raised_ns < TRIAL_NS;
}

bool policy_is_quiet(struct probe_unit *unit)
{
    if (unit->excluded || unit->trial || unit->cost_ns != unit->seen_ns || unit->recent_ns >= 1 ||
        unit->recent_span_ns < RECENT_NS / 2)
        return false;
    unit->recent_ns = 0;
    unit->recent_span_ns = RECENT_NS; /* what it would come to */
    return true;
}

/* CPU nanoseconds a nanosecond. */
static double rate_of(const struct probe_unit *unit)
{
    return unit->recent_span_ns > 0 ? unit->recent_ns / unit->recent_span_ns : 0;
}

/* What the hits since the last sample took. */
static double consume_costs(struct probe_unit *const *units, size_t count, double elapsed, double keep)
{
    double paid = 0;

    for (size_t i = 0; i < count; i++) {
        struct probe_unit *unit = units[i];
        double cost = (double)(unit->cost_ns - unit->seen_ns);

        unit->seen_ns = unit->cost_ns;
        paid += cost;
        if (unit->excluded) /* it keeps what it was excluded for; stragglers cost, but say nothing */
            continue;
        unit->recent_ns = keep * unit->recent_ns + (unit->scale > 1 ? unit->scale : 1) * cost;
        unit->recent_span_ns = keep * unit->recent_span_ns + elapsed;
    }
    return paid;
}

/* What the target has used since the last sample. */
static double consume_used(struct budget_policy *policy, uint64_t cpu_ns)
{
    uint64_t seen = policy->seen_cpu_ns;

    policy->seen_cpu_ns = cpu_ns;
    return seen && cpu_ns > seen ? (double)(cpu_ns - seen) : 0;
}

/* What it has needed of that itself. */
static double consume_own(struct budget_policy *policy, double used, double elapsed, double paid)
{
    double own = used - paid > OWN_PART * used ? used - paid : OWN_PART * used;

    policy->own_is_guess = used - paid < OWN_PART * used;
    policy->used_ns += (uint64_t)used;
    policy->paid_ns += (uint64_t)paid;
    return own > IDLE_PART * elapsed ? own : IDLE_PART * elapsed;
}

static void note_second(struct budget_policy *policy, double elapsed, double paid, double own)
{
    policy->second_ns += elapsed;
    policy->second_paid_ns += paid;
    policy->second_own_ns += own;
    if (policy->second_ns < SECOND_NS)
        return;
    if (policy->second_paid_ns > policy->worst_share * policy->second_own_ns)
        policy->worst_share = policy->second_paid_ns / policy->second_own_ns;
    policy->second_ns = policy->second_paid_ns = policy->second_own_ns = 0;
}

static void fill_bucket(struct budget_policy *policy, double more)
{
    const double most = policy->share * BUCKET_NS, least = -policy->share * DEBT_NS;

    policy->bucket_ns += more;
    if (policy->bucket_ns > most)
        policy->bucket_ns = most;
    if (policy->bucket_ns < least)
        policy->bucket_ns = least;
}

void policy_owe(struct budget_policy *policy, double ns)
{
    if (ns > 0)
        fill_bucket(policy, -ns);
}

static void exclude(struct probe_unit *unit, uint64_t now_ns)
{
    bool failed = unit->trial || (unit->pause_ns && now_ns - unit->changed_ns < HELD_NS);

    unit->pause_ns = failed ? unit->pause_ns * 2 : FIRST_PAUSE_NS * (unit->cheap ? CHEAP_PAUSES : 1ull);
    if (unit->pause_ns > LONGEST_PAUSE_NS)
        unit->pause_ns = LONGEST_PAUSE_NS;
    unit->excluded = true;
    unit->trial = false;
    unit->expected = rate_of(unit);
    debug_log("excludes functions that take %.4f of a processor, for %.1f s", unit->expected,
              (double)unit->pause_ns / SECOND_NS);
    unit->changed_ns = now_ns;
    unit->retry_ns = now_ns + unit->pause_ns;
}

enum { DEAR, CHEAP, NO_HELP };

static unsigned rank_of(const struct probe_unit *unit, double affordable)
{
    return unit->cheap ? CHEAP : rate_of(unit) < NEXT_TO_NOTHING * affordable ? NO_HELP : DEAR;
}

static int in_order(const void *left, const void *right)
{
    struct probe_unit *const *a = left, *const *b = right;

    if ((*a)->rank != (*b)->rank)
        return (*a)->rank < (*b)->rank ? -1 : 1;
    return (rate_of(*a) < rate_of(*b)) - (rate_of(*a) > rate_of(*b));
}

/* Excludes units, of each rank those that cost most first, until the rest fits. A target that gets time back
 * calls the others more often, too: what they cost of its own time stays the same. Where that is not known,
 * since more is counted than the target has used, what the hottest ones leave of it is seen before cooler
 * ones go. `total`, `own`: the rates of all units and of the target itself. Returns how many; -ENOMEM. */
static int shed(struct budget_policy *policy, struct probe_unit *const *units, size_t count, double total,
                double own, uint64_t now_ns)
{
    AUTO_FREE struct probe_unit **order = calloc(count + 1, sizeof(struct probe_unit *));
    bool trials_only = policy->bucket_ns >= 0;
    double hottest = 0;
    size_t in = 0;
    int changed = 0;

    if (!order)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        if (!units[i]->excluded && !units[i]->fixed && rate_of(units[i]) > 0 &&
            (units[i]->trial || !trials_only))
            order[in++] = units[i];
    for (size_t i = 0; i < in; i++)
        order[i]->rank = rank_of(order[i], policy->share * own);
    qsort(order, in, sizeof(struct probe_unit *), in_order);
    for (size_t i = 0; i < in && total > FITS * policy->share * own; i++) {
        if (trials_only && order[i]->rank == NO_HELP)
            break; /* it is not on trial for what others cost */
        if (policy->own_is_guess && MUCH_COOLER * rate_of(order[i]) < hottest)
            break;
        hottest = rate_of(order[i]) > hottest ? rate_of(order[i]) : hottest;
        total -= rate_of(order[i]);
        exclude(order[i], now_ns);
        changed++;
    }
    if (changed)
        policy->batch = 0; /* of the last one not all could stay */
    if (changed && policy->own_is_guess)
        policy->recent_own_ns = policy->recent_span_ns = 0;
    return changed;
}

static bool end_trials(struct probe_unit *const *units, size_t count, uint64_t now_ns)
{
    bool any = false;

    for (size_t i = 0; i < count; i++) {
        if (units[i]->trial && now_ns - units[i]->changed_ns >= TRIAL_NS)
            units[i]->trial = false;
        any |= units[i]->trial;
    }
    return any;
}

/* Those that wait before those that have been tried, the coolest first; of the others those first that have
 * been due for longest. */
static int next_first(const void *left, const void *right)
{
    const struct probe_unit *a = *(struct probe_unit *const *)left, *b = *(struct probe_unit *const *)right;

    if (a->waits != b->waits)
        return b->waits - a->waits;
    return a->waits && a->profile_samples != b->profile_samples
               ? (a->profile_samples > b->profile_samples) - (a->profile_samples < b->profile_samples)
               : (a->retry_ns > b->retry_ns) - (a->retry_ns < b->retry_ns);
}

static void begin_trial(struct probe_unit *unit, uint64_t now_ns)
{
    debug_log("tries functions again that took %.4f of a processor", unit->expected);
    unit->excluded = unit->waits = false;
    unit->trial = true;
    unit->changed_ns = now_ns;
    unit->recent_ns = unit->recent_span_ns = 0;
}

/* Lets units in that are due: as many that wait as a batch has, or others as long as the bucket has what they
 * are expected to take. Returns how many. */
static int let_in(struct budget_policy *policy, struct probe_unit *const *due, size_t count, uint64_t now_ns)
{
    bool waiting = due[0]->waits;
    double left = policy->bucket_ns;
    int changed = 0;

    if (now_ns - policy->raised_ns < (waiting ? PACE_NS : FIRST_PAUSE_NS))
        return 0;
    if (waiting)
        policy->batch = policy->batch ? policy->batch : 1;
    for (size_t i = 0; i < count && due[i]->waits == waiting; i++) {
        double cost = EXPOSED_NS * due[i]->expected;

        if (waiting ? (size_t)changed == policy->batch : changed && cost > left)
            break;
        left -= cost;
        begin_trial(due[i], now_ns);
        changed++;
    }
    if (waiting && policy->batch < BATCH_MAX)
        policy->batch *= 2;
    policy->raised_ns = now_ns;
    return changed;
}

static bool is_due(const struct probe_unit *unit, uint64_t now_ns)
{
    return unit->excluded && !unit->page_excluded && now_ns >= unit->retry_ns;
}

/* -ENOMEM. */
static int try_due(struct budget_policy *policy, struct probe_unit *const *units, size_t count,
                   uint64_t now_ns)
{
    AUTO_FREE struct probe_unit **due = NULL;
    size_t found = 0;

    for (size_t i = 0; i < count; i++)
        found += is_due(units[i], now_ns);
    if (!found)
        return 0;
    due = calloc(found, sizeof(struct probe_unit *));
    if (!due)
        return -ENOMEM;
    found = 0;
    for (size_t i = 0; i < count; i++)
        if (is_due(units[i], now_ns))
            due[found++] = units[i];
    qsort(due, found, sizeof(struct probe_unit *), next_first);
    return let_in(policy, due, found, now_ns);
}

int policy_decide(struct budget_policy *policy, struct probe_unit *const *units, size_t count,
                  uint64_t now_ns, uint64_t cpu_ns)
{
    double elapsed = policy->seen_ns ? (double)(now_ns - policy->seen_ns) : 0;
    double keep = elapsed < RECENT_NS ? 1 - elapsed / RECENT_NS : 0;
    double used = consume_used(policy, cpu_ns);
    double paid = consume_costs(units, count, elapsed, keep) + policy->standing * used;
    double own = consume_own(policy, used, elapsed, paid), own_rate, affordable, total;
    bool trials;
    int r = 0;

    if (!policy->seen_ns)
        policy->raised_ns = now_ns;
    policy->seen_ns = now_ns;
    if (!(elapsed > 0))
        return 0;
    note_second(policy, elapsed, paid, own);
    policy->recent_own_ns = keep * policy->recent_own_ns + own;
    policy->recent_span_ns = keep * policy->recent_span_ns + elapsed;
    fill_bucket(policy, policy->share * own - paid);
    own_rate = policy->recent_own_ns / policy->recent_span_ns;
    affordable = policy->share * own_rate;
    total = policy->standing * own_rate;
    for (size_t i = 0; i < count; i++)
        total += units[i]->excluded ? 0 : rate_of(units[i]);
    trials = end_trials(units, count, now_ns);
    if (total > affordable && (trials || policy->bucket_ns < 0))
        r = shed(policy, units, count, total, own_rate, now_ns);
    else if (policy->bucket_ns > ROOM * policy->share * BUCKET_NS)
        r = try_due(policy, units, count, now_ns);
    return r;
}
