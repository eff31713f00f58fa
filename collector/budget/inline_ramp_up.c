/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Inline probes are put into processes that run: one process after the other, and each is observed before the
 * next one gets them.
 *
 * Inline probes write all that they see before that can be refused, and processes of one program do much the
 * same. So the first of them that is busy shows which functions are called too often: these are excluded,
 * and the other processes begin without.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "collector/budget/budget_state.h"
#include "collector/process/process.h"

#define STEP_NS 2000000.0
#define RAN_NS 4000000u /* a process is known when it has run so long */
#define LONGEST_NS 200000000.0
#define JUDGED_NS 1000000.0 /* a process that has run less shows nothing, and has not paid much */
#define IDLE_NS 20000000.0  /* one that has not run for IDLE_PART of that is not waited for */
#define IDLE_PART 0.02
#define READ_NS 50000000u /* a program that keeps loading libraries gives as many records as are read */
#define BUSY_PART 0.1     /* of a processor: with less the target does not wait for the recorder's work */
#define WORK_PART 0.5     /* of the budget; the other half is for calls, which are recorded already */
#define SPREAD_NS 16e9    /* over so much that is spread at most */
#define OWN_PART 0.1      /* of what a process uses is its own at least: the costs are estimates */
#define FITS 0.7          /* of that half: what is kept when something is excluded */
#define MUCH_COOLER \
    8            /* times: a function called less than the hottest by that waits for the next observation */
#define ROUNDS 4 /* of observing one process at most */
#define STANDS_PART 0.25 /* of the work on a process: it stands still, wherever that is done */

/* A function that was called. */
struct callee {
    uint32_t function;
    double calls; /* a share of those that were lost among them */
};

/* Reads what the rings have. `*ret_ns`: when it began to read what it has read last. */
static int read_rings(struct budget *budget, uint64_t *ret_ns, struct error *err)
{
    uint64_t now = clock_ns(CLOCK_MONOTONIC), until = now + READ_NS;
    int r;

    do {
        *ret_ns = now;
        r = budget->options.consume(budget->options.context, err);
        now = clock_ns(CLOCK_MONOTONIC);
    } while (r > 0 && now < until);
    return r < 0 ? r : 0;
}

/* What has been read has been paid, and tells nothing of the next process. */
static void forget_calls(struct budget *budget)
{
    uint64_t calls = budget->accounts.inline_lost;

    for (size_t i = 0; i < budget->accounts.function_count; i++) {
        calls += budget->accounts.inline_new[i];
        budget->accounts.inline_new[i] = 0;
    }
    budget->accounts.early_ns += (uint64_t)(accounts_inline_cost(&budget->accounts) * (double)calls);
    budget->accounts.early_calls += calls;
    budget->accounts.inline_lost = 0;
}

/* How long a process has run since it had used `cpu_ns`. */
static double ran_since(uint64_t now, uint64_t cpu_ns)
{
    return now > cpu_ns ? (double)(now - cpu_ns) : 0;
}

/* Lets a process run until it is known. */
static void watch(const struct budget *budget, pid_t pid)
{
    uint64_t begun = clock_ns(CLOCK_MONOTONIC), its_ns = process_cpu_ns(pid);
    double ran, elapsed;

    do {
        bool stop = !budget_pause(budget, STEP_NS);

        ran = ran_since(process_cpu_ns(pid), its_ns);
        elapsed = (double)(clock_ns(CLOCK_MONOTONIC) - begun);
        if (stop || (elapsed >= IDLE_NS && ran < IDLE_PART * elapsed))
            break;
    } while (ran < RAN_NS && elapsed < LONGEST_NS);
}

static int hottest_first(const void *left, const void *right)
{
    const struct callee *a = left, *b = right;

    return (a->calls < b->calls) - (a->calls > b->calls);
}

/* Those that are in and were called, the hottest first. */
static int list_callees(const struct budget *budget, struct callee **ret_callees, size_t *ret_count)
{
    struct callee *callees = calloc(budget->accounts.function_count + 1, sizeof(*callees));
    double recorded = 0, scale;
    size_t count = 0;

    if (!callees)
        return -ENOMEM;
    for (size_t i = 0; i < budget->accounts.function_count; i++)
        recorded += budget->accounts.inline_new[i];
    scale = recorded > 0 ? 1 + (double)budget->accounts.inline_lost / recorded : 1;
    for (uint32_t i = 0; i < budget->accounts.function_count; i++)
        if (budget->accounts.inline_new[i] && !budget_unit(budget, i)->excluded)
            callees[count++] = (struct callee){i, scale * budget->accounts.inline_new[i]};
    qsort(callees, count, sizeof(*callees), hottest_first);
    *ret_callees = callees;
    *ret_count = count;
    return 0;
}

int budget_choose_inline(struct budget *budget, const struct budget_exposure *exposure)
{
    AUTO_FREE struct callee *callees = NULL;
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    double cost = accounts_inline_cost(&budget->accounts), least = OWN_PART * exposure->ran, paid = 0, own,
           affordable;
    size_t count = 0;
    int r = list_callees(budget, &callees, &count), gone = 0;

    for (size_t i = 0; i < count; i++)
        paid += cost * callees[i].calls;
    own = exposure->ran - paid > least ? exposure->ran - paid : least;
    affordable = (1 - WORK_PART) * budget->options.share * own;
    if (r || exposure->ran < JUDGED_NS || paid <= affordable)
        return r;
    for (size_t i = 0; i < count && paid > FITS * affordable; i++) {
        if (own == least && MUCH_COOLER * callees[i].calls < callees[0].calls)
            break; /* what is its own is not known: the hottest have hidden it */
        paid -= cost * callees[i].calls;
        budget_exclude(budget, callees[i].function, callees[i].calls / exposure->elapsed * 1e9,
                       cost * callees[i].calls / exposure->elapsed, now);
        gone++;
    }
    return gone;
}

/* Lets a target that is busy have the time that makes up for what it took to give one process its probes. */
static void make_up(const struct budget *budget, double spread)
{
    double took = accounts_work(&budget->accounts);
    double elapsed = (double)(clock_ns(CLOCK_MONOTONIC) - budget->accounts.work.ns);
    double ran = ran_since(streams_cpu_ns(budget->options.streams), budget->accounts.work.target_ns);
    double part = WORK_PART * budget->options.share * (double)sysconf(_SC_NPROCESSORS_ONLN);
    double cost = took * (STANDS_PART + (1 - STANDS_PART) * budget->accounts.contention.part);
    double pause = cost / part - elapsed;

    if (ran > BUSY_PART * elapsed && pause > 0)
        budget_let_run(budget, pause < spread ? pause : spread);
}

struct budget_exposure budget_exposure_of(double calls_span, double ran, double ran_span)
{
    return (struct budget_exposure){.elapsed = calls_span,
                                    .ran = ran_span > 0 ? ran * calls_span / ran_span : 0};
}

/* Lets the process that has just been patched run, and reads what it calls. */
static int expose(struct budget *budget, pid_t pid, struct budget_exposure *exposure, struct error *err)
{
    uint64_t calls_from, calls_to, ran_from, ran;
    int r = read_rings(budget, &calls_from, err);

    if (r)
        return r;
    forget_calls(budget);
    budget->options.inlined->of->ran(budget->options.inlined);
    ran_from = clock_ns(CLOCK_MONOTONIC);
    watch(budget, pid);
    r = read_rings(budget, &calls_to, err);
    if (r)
        return r;
    ran = budget->options.inlined->of->ran(budget->options.inlined);
    *exposure = budget_exposure_of((double)(calls_to - calls_from), (double)ran,
                                   (double)(clock_ns(CLOCK_MONOTONIC) - ran_from));
    return 0;
}

/* Returns how many functions of the process that has just been patched had to go. */
static int observe(struct budget *budget, pid_t pid, struct error *err)
{
    struct budget_exposure exposure;
    int gone, r = expose(budget, pid, &exposure, err);

    if (r)
        return r;
    cpu_contention_sample(&budget->accounts.contention, clock_ns(CLOCK_MONOTONIC));
    gone = budget_choose_inline(budget, &exposure);
    if (gone < 0)
        return error_no_memory(err);
    r = gone ? budget_relink(budget, err) : 0;
    return r ? r : gone;
}

int budget_ramp_up_process(struct budget *budget, pid_t pid, double part, struct error *err)
{
    int r = 1;

    budget->ramp_up.running = true;
    for (unsigned round = 0; r > 0 && round < ROUNDS; round++)
        r = observe(budget, pid, err);
    if (r < 0)
        return r;
    make_up(budget, SPREAD_NS * part);
    accounts_mark_work(&budget->accounts, streams_cpu_ns(budget->options.streams));
    return 0;
}
