/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The accounts of a budget: how often each function is called, and what its probes cost the target.
 *
 * The kernel side counts the hits of each uprobe (struct budget_slot), the reader of inline records counts
 * calls. Both are multiplied by the measured cost of a hit and added to the cost of the function's unit
 * (probe_unit.cost_ns), from which the policy decides. Nothing here decides, and nothing here knows links,
 * streams or the store: times and the target's CPU time are passed in.
 *
 * Of a large program that has probes nearly no function is called, and samples are taken twenty times a
 * second. So a sample works on the active set: the functions that were called of late, or are not fully
 * recorded.
 */
#ifndef TRACECTL_COLLECTOR_BUDGET_ACCOUNTS_H
#define TRACECTL_COLLECTOR_BUDGET_ACCOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "bpf/wire.h"
#include "collector/arch/record.h"
#include "collector/budget/budget_status.h"
#include "collector/budget/cpu_contention.h"
#include "collector/budget/own_work.h"
#include "collector/budget/policy.h"
#include "collector/images/image_table.h"

/* The cost of hits, with their effect on the target's caches. */
struct hit_costs {
    double emulated_ns, single_stepped_ns; /* of a call that is recorded */
    double skipped_ns;                     /* less, for a call that is only counted */
    double return_ns;                      /* more, for a call whose return is probed */
    double inline_ns;                      /* of a call that an inline probe sees, recorded or lost */
    double read_ns;                        /* to read it, on a processor that the target would have had */
};

/* By index, as cookies have it. */
struct budget_probe {
    uint32_t function;
    uint32_t recorded_ns, missed_ns;
    bool is_return;                     /* on a RET */
    uint64_t recorded, missed, outside; /* at the last sample */
    uint64_t early;                     /* when its group was complete, before the recording began */
};

/* By number. Its unit is that of `unit`, the least number of all functions that are excluded together. */
struct budget_function {
    bool probed, inlined; /* has uprobes or an inline probe; the latter */
    bool profiled;        /* processes ran it when their stacks were sampled */
    uint32_t unit;
    enum record_state state;                    /* as the store has it */
    uint64_t recorded, missed, missed_reported; /* calls; the last: in rows of `blind` that have ended */
    uint64_t from_ns, last_missed_ns;           /* of the row that is open, CLOCK_REALTIME; CLOCK_MONOTONIC */
    double recent_calls, recent_span_ns;        /* older ones count less and less */
    double inline_weight; /* calls that inline probes recorded, those of the sample before count half */
    bool ahead;           /* its inline probe is in in one process only, see inline_moves.c */
    bool active;          /* it is in the active set */
    bool planned;         /* the plan in the store excludes it */
};

/* What a sample works on: functions that are called, or are excluded or throttled. */
struct active_set {
    uint32_t *functions; /* numbers */
    struct probe_unit **units;
    size_t count, unit_count, capacity, unit_capacity; /* as many as there are functions */
    uint64_t chosen_ns;                                /* when quiet ones were removed */
};

struct accounts {
    struct hit_costs costs;
    struct cpu_contention contention;
    struct budget_slot *slots; /* the kernel side's; borrowed */
    struct budget_probe *probes;
    size_t probe_count, probe_capacity;
    struct budget_function *functions;
    struct probe_unit *units; /* by function, used where a function is its own unit */
    size_t function_count, function_capacity, unit_capacity;
    struct active_set active;
    uint32_t *inline_new; /* calls by inline probes since the last sample, by function */
    size_t inline_capacity;
    uint64_t inline_lost;             /* since the last sample */
    uint64_t inline_calls, inline_ns; /* all so far, the lost ones too; their cost */
    uint64_t early_ns;                /* the cost of hits before the recording began */
    uint64_t early_calls;             /* inline ones among them */
    struct own_work work;
    uint64_t sampled_ns; /* the last sample */
};

/* Measures what probes cost on this machine, unless that is known: a third of a second. `timed`: inline
 * probes keep the time of each call. */
void accounts_init(struct accounts *accounts, struct budget_slot *slots, bool timed);
void accounts_release(struct accounts *accounts);

/* Has accounts for the probes and functions of an image; `tick_ns`: what a CPU may spend in a tick, for the
 * kernel side's limits. -ENOMEM. */
int accounts_add_image(struct accounts *accounts, const struct traced_image *image, uint32_t tick_ns);

/* Reads all counts. */
void accounts_sample(struct accounts *accounts, uint64_t now_ns);

/* The kernel side is to announce the next call of the function that is not recorded; reads its counts up to
 * here. */
void accounts_rearm(struct accounts *accounts, uint32_t function, uint64_t now_ns);

/* Calls that inline probes have recorded, or had no buffer for. */
void accounts_inline_calls(struct accounts *accounts, const struct agent_record *records, size_t count);
void accounts_inline_lost(struct accounts *accounts, uint64_t calls);

/* What the recorder has used, reading calls aside, which are counted for that, since accounts_mark_work();
 * nanoseconds. `target_ns`: what the target has used so far. */
void accounts_mark_work(struct accounts *accounts, uint64_t target_ns);
double accounts_work(const struct accounts *accounts);

/* Once a second: the share of the target's time that this work costs it (own_work.share). `share`: the
 * budget. */
void accounts_sample_work(struct accounts *accounts, uint64_t now_ns, uint64_t target_ns, double share);

/* A function is called, or is not fully recorded: it joins the active set. */
void accounts_activate(struct accounts *accounts, uint32_t function);

/* Empties the active set: the next sample looks through all functions. */
void accounts_reset_active(struct accounts *accounts);

static inline struct probe_unit *accounts_unit(const struct accounts *accounts, uint32_t function)
{
    return &accounts->units[accounts->functions[function].unit];
}

/* The present cost of an inline call, nanoseconds. */
static inline double accounts_inline_cost(const struct accounts *accounts)
{
    return accounts->costs.inline_ns + accounts->contention.part * accounts->costs.read_ns;
}

static inline double budget_calls_per_second(const struct budget_function *function)
{
    return function->recent_span_ns > 0 ? function->recent_calls / function->recent_span_ns * 1e9 : 0;
}

#endif
