/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Inline probes are put into processes that run: one process after the other, each looked at before the next
 * one gets them.
 *
 * Inline probes write all that they see before anybody can say no, and processes of one program do much the
 * same. So the first of them that is busy shows which functions are called too often: those are taken out,
 * and the others begin without.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "collector/govern/budget_state.h"
#include "collector/target/process.h"

#define STEP_NS 2000000.0
#define RAN_NS 4000000u /* a process is known when it has run so long */
#define LONGEST_NS 200000000.0
#define IDLE_NS 20000000.0 /* one that has not run for IDLE_PART of that is not waited for */
#define IDLE_PART 0.02
#define ROUNDS 64
#define BUSY_PART 0.1 /* of a processor: with less nobody waits for the recorder's work */
#define WORK_PART 0.5 /* of the budget, while calls are recorded already */
#define PAUSE_NS 100000000.0
#define SPREAD_NS 8e9 /* over so much that is spread at most */
#define OWN_PART 0.1  /* of what a process uses is its own at least: the costs are estimates */
#define FITS 0.7      /* of the budget: what is left in when something is taken out */

/* What has been seen since one more process has inline probes. */
struct contact {
    double elapsed, ran; /* nanoseconds; the latter: all processes that have them together */
    double scale;        /* so many calls for each one that was recorded */
    double share;        /* of their own time: what inline probes took */
};

/* One that was called. */
struct caller {
    uint32_t function;
    double share; /* as above */
};

/* Reads what the rings have; what was read before is forgotten. */
static int read_rings(struct budget *budget, bool forget, struct error *err)
{
    int r = 0;

    for (unsigned round = 0; round < ROUNDS; round++)
        if ((r = budget->options.consume(budget->options.context, err)) <= 0)
            break;
    if (r < 0)
        return r;
    for (size_t i = 0; forget && i < budget->function_count; i++)
        budget->inline_new[i] = 0;
    budget->inline_lost = forget ? 0 : budget->inline_lost;
    return 0;
}

static uint64_t cpu_of_patched(const struct budget *budget)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < budget->patched_count; i++)
        sum += process_cpu_ns(budget->patched[i]);
    return sum;
}

/* How long a process has run since it had used `cpu_ns`. */
static double ran_since(uint64_t now, uint64_t cpu_ns)
{
    return now > cpu_ns ? (double)(now - cpu_ns) : 0;
}

/* Lets the newest process run until it is known. */
static void watch(const struct budget *budget, struct contact *contact)
{
    pid_t pid = budget->patched[budget->patched_count - 1];
    uint64_t begun = clock_ns(CLOCK_MONOTONIC), all_ns = cpu_of_patched(budget), its_ns = process_cpu_ns(pid);
    double ran;

    do {
        bool stop = !budget_pause(budget, STEP_NS);

        ran = ran_since(process_cpu_ns(pid), its_ns);
        contact->elapsed = (double)(clock_ns(CLOCK_MONOTONIC) - begun);
        if (stop || (contact->elapsed >= IDLE_NS && ran < IDLE_PART * contact->elapsed))
            break;
    } while (ran < RAN_NS && contact->elapsed < LONGEST_NS);
    contact->ran = ran_since(cpu_of_patched(budget), all_ns);
}

static int hottest_first(const void *left, const void *right)
{
    const struct caller *a = left, *b = right;

    return (a->share < b->share) - (a->share > b->share);
}

/* Those that were called, the hottest first. */
static int list_callers(const struct budget *budget, struct contact *contact, struct caller **ret_callers,
                        size_t *ret_count)
{
    struct caller *callers = calloc(budget->function_count + 1, sizeof(*callers));
    double recorded = 0, paid, own;
    size_t count = 0;

    if (!callers)
        return -ENOMEM;
    for (size_t i = 0; i < budget->function_count; i++)
        recorded += budget->inline_new[i];
    contact->scale = recorded > 0 ? 1 + (double)budget->inline_lost / recorded : 1;
    paid = recorded * contact->scale * budget_inline_cost(budget);
    own = contact->ran - paid > OWN_PART * contact->ran ? contact->ran - paid : OWN_PART * contact->ran;
    contact->share = own > 0 ? paid / own : 0;
    for (uint32_t i = 0; i < budget->function_count && own > 0; i++)
        if (budget->inline_new[i] && !budget_unit(budget, i)->out)
            callers[count++] = (struct caller){
                .function = i,
                .share = budget->inline_new[i] * contact->scale * budget_inline_cost(budget) / own,
            };
    qsort(callers, count, sizeof(*callers), hottest_first);
    *ret_callers = callers;
    *ret_count = count;
    return 0;
}

/* A function is out until it is tried again. */
static void leave_out(struct budget *budget, const struct caller *caller, const struct contact *contact,
                      uint64_t now)
{
    struct budget_function *function = &budget->functions[caller->function];

    function->recent_calls = budget->inline_new[caller->function] * contact->scale * 1e9 / contact->elapsed;
    function->recent_span_ns = 1e9;
    governor_expect_hot(budget_unit(budget, caller->function),
                        function->recent_calls * budget_inline_cost(budget) / 1e9, now);
}

/* Whether any has to go; -ENOMEM. */
static int choose(struct budget *budget, struct contact *contact)
{
    AUTO_FREE struct caller *callers = NULL;
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    double share = budget->options.share;
    size_t count = 0;
    int r = list_callers(budget, contact, &callers, &count), gone = 0;

    if (r || contact->share <= share)
        return r;
    for (size_t i = 0; i < count && contact->share > FITS * share; i++) {
        contact->share -= callers[i].share;
        leave_out(budget, &callers[i], contact, now);
        gone++;
    }
    return gone;
}

/* What this process has used, with the helpers that it has waited for. */
static uint64_t own_cpu_ns(void)
{
    struct rusage helpers;
    uint64_t own = clock_ns(CLOCK_PROCESS_CPUTIME_ID);

    if (getrusage(RUSAGE_CHILDREN, &helpers))
        return own;
    return own + 1000 * ((uint64_t)(helpers.ru_utime.tv_usec + helpers.ru_stime.tv_usec) +
                         1000000u * (uint64_t)(helpers.ru_utime.tv_sec + helpers.ru_stime.tv_sec));
}

void budget_mark_effort(struct budget *budget)
{
    budget->effort = (struct budget_effort){
        .own_ns = own_cpu_ns(),
        .target_ns = streams_cpu_ns(budget->options.streams),
        .ns = clock_ns(CLOCK_MONOTONIC),
    };
}

/* Lets a target that is busy have the time that makes up for what it took to give one process its probes. */
static void make_up(const struct budget *budget, double spread)
{
    double took = (double)(own_cpu_ns() - budget->effort.own_ns);
    double elapsed = (double)(clock_ns(CLOCK_MONOTONIC) - budget->effort.ns);
    double ran = ran_since(streams_cpu_ns(budget->options.streams), budget->effort.target_ns);
    double part = WORK_PART * budget->options.share * (double)sysconf(_SC_NPROCESSORS_ONLN);
    double pause = took / part - elapsed;

    if (!(ran > BUSY_PART * elapsed))
        return;
    for (pause = pause < spread ? pause : spread; pause > 0; pause -= PAUSE_NS)
        if (!budget_pause(budget, pause < PAUSE_NS ? pause : PAUSE_NS))
            return;
}

int budget_meet_process(struct budget *budget, pid_t pid, double part, struct error *err)
{
    struct contact contact = {0};
    int r = read_rings(budget, true, err);

    if (r)
        return r;
    if (array_reserve(&budget->patched, &budget->patched_capacity, budget->patched_count + 1))
        return error_no_memory(err);
    budget->patched[budget->patched_count++] = pid;
    watch(budget, &contact);
    r = read_rings(budget, false, err);
    if (r)
        return r;
    crowding_look(&budget->crowding, clock_ns(CLOCK_MONOTONIC));
    r = choose(budget, &contact);
    if (r < 0)
        return error_no_memory(err);
    r = r ? budget_regroup(budget, err) : 0;
    if (!r)
        make_up(budget, SPREAD_NS * part);
    budget_mark_effort(budget);
    return r;
}
