/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Private to collector/budget/: the budget ties three objects together.
 *
 *   accounts.h     what the probes cost, and how often functions are called
 *   policy.h       which functions are excluded, or come back: pure
 *   attachment.h   the links of uprobes, and how they are moved; inline probes are moved by inline_moves.c
 */
#ifndef TRACECTL_COLLECTOR_BUDGET_BUDGET_STATE_H
#define TRACECTL_COLLECTOR_BUDGET_BUDGET_STATE_H

#include "collector/budget/accounts.h"
#include "collector/budget/attachment.h"
#include "collector/budget/budget.h"
#include "collector/budget/context_switches.h"
#include "collector/budget/policy.h"

struct budget_image {
    struct traced_image *image;
    bool apart; /* it is probed process by process */
    size_t group_size;
    struct process_switches *switches; /* of its processes, when their context switches were last sampled */
    size_t switches_count;
    uint64_t switches_ns, chosen_ns; /* when that was; when pages were chosen */
    double pages_cost,
        kept_cost; /* of the target's time, of all pages then and of those that may have probes */
    pid_t ahead;   /* where functions with inline probes are tried before the other processes get them; 0:
                      nowhere */
    uint64_t ahead_cpu_ns; /* what it had used at the last sample */
};

/* Before the recording begins. */
struct ramp_up {
    bool running;          /* there were processes that ran */
    uint64_t begun_cpu_ns; /* what they had used before the first image had probes */
    uint64_t begun_ns;     /* when that was */
    double share;          /* of the target's time: the cost of the groups that have been judged */
    bool is_idle;          /* as far as the last group showed */
    double busy;           /* processors, as the last groups showed; 0: not known */
};

struct budget {
    struct budget_options options;
    struct accounts accounts;
    struct budget_policy policy;
    struct attachment attachment;
    struct budget_image *images;
    size_t image_count, image_capacity;
    bool *away;   /* by unit: it has no probes, or in one process only */
    bool *marked; /* a scratch area, by function */
    size_t away_capacity, marked_capacity;
    struct ramp_up ramp_up;
    double pages_share;  /* the cost of copies of pages, of the target's time */
    bool urgent;         /* a function has gone over its budget */
    uint64_t used_ns;    /* what the target had used by the last sample */
    uint64_t planned_ns; /* when the plan was stored */
};

static inline struct probe_unit *budget_unit(const struct budget *budget, uint32_t function)
{
    return accounts_unit(&budget->accounts, function);
}

/* A function is excluded until it is tried again; `cost`: CPU nanoseconds a nanosecond. */
static inline void budget_exclude(struct budget *budget, uint32_t function, double calls_per_second,
                                  double cost, uint64_t now_ns)
{
    budget->accounts.functions[function].recent_calls = calls_per_second;
    budget->accounts.functions[function].recent_span_ns = 1e9;
    policy_expect_hot(budget_unit(budget, function), cost, now_ns);
}

/* Whether a function has its inline probe in one process only. */
static inline bool budget_is_ahead(const struct budget *budget, uint32_t function)
{
    return budget->accounts.functions[function].ahead && budget_unit(budget, function)->trial;
}

/* ------------------------------------------------------------------------------------ moves: relink.c,
 * inline_moves.c */

/* The probes are moved so that they are what the policy wants. */
int budget_relink(struct budget *budget, struct error *err);

/* attachment_options.before_close; the context is the budget. */
int budget_before_close(void *context, const struct probe_group *group, struct error *err);

/* Inline probes go and come so that they are what the policy wants; those that are on trial in one process
 * first, where there are several. */
int budget_move_inline(struct budget *budget, struct error *err);

/* The same of one image, without anything that is tried anew. */
int budget_change_inline(struct budget *budget, const struct budget_image *place, struct error *err);

/* Whether functions that were tried in one process can go to the others, or need another one. */
bool budget_trials_move(const struct budget *budget);

/* What is on trial in one process counts for all of them. `cpu_ns`: what all have used. */
void budget_scale_trials(struct budget *budget, uint64_t cpu_ns);

/* ------------------------------------------------------------------------------------ ramp_up.c,
 * inline_ramp_up.c */

/* Waits. False: the recording is to end. */
bool budget_pause(const struct budget *budget, double ns);
/* The same for a long time that the program is to run: what is left of it is reported (base/progress.h). */
void budget_let_run(const struct budget *budget, double ns);

/* Before anything is recorded, the newest group has its probes since `from_ns` in a program that runs:
 * excludes functions that are called too often, and waits until the cost of that is within the budget. */
int budget_ramp_up_group(struct budget *budget, uint64_t from_ns, struct error *err);

/* How many of the `most` places that are left of a group get their probes at once. */
size_t budget_piece(const struct budget *budget, size_t group_size, size_t most);

/* The groups from number `first` on have been observed, when those before them cost `share`: excludes
 * functions that turn out to be called too often after all; if there are any, the others become one group. */
int budget_judge_groups(struct budget *budget, size_t first, double share, struct error *err);

/* What has been observed since one more process has inline probes, nanoseconds: how long that was, and how
 * much all processes that have them have run, born with them or not. */
struct budget_exposure {
    double elapsed, ran;
};

/* Calls were observed for `calls_span` and processes for `ran_span` nanoseconds, in which they ran for `ran`.
 * The two are read one after the other; a recorder that is kept from it in between, where no processor is
 * free, would take what was called in one time for what was run in another. */
struct budget_exposure budget_exposure_of(double calls_span, double ran, double ran_span);

/* Excludes the hottest functions with inline probes if the cost of what was observed of them
 * (accounts.inline_new, inline_lost) is more than the budget, unless they have run too little to tell.
 * Returns how many, or -ENOMEM. */
int budget_choose_inline(struct budget *budget, const struct budget_exposure *exposure);

/* ------------------------------------------------------------------------------------ page_exclusion.c,
 * plan.c, gaps.c */

/* Samples the context switches of an image's processes, and excludes functions on pages that they share and
 * are busy with. -ENOMEM, or whether any has to go. */
int budget_sample_pages(struct budget *budget, struct budget_image *image, uint64_t now_ns);

/* The same with these switches: chooses anew where that costs another sum than the last time. */
int budget_exclude_pages(struct budget *budget, struct budget_image *image, const struct switch_rates *rates,
                         uint64_t now_ns);

/* What the plan for the next recording is to say of a function: calls a second of one that is to begin
 * excluded, 0 of one that is to begin recorded; negative: what it said before. */
double budget_planned(const struct budget *budget, uint32_t function);

/* Excludes the functions that the last recording of this binary excluded. */
int budget_read_plan(struct budget *budget, const struct traced_image *image, uint64_t now_ns,
                     struct error *err);

/* Writes what is new about it for the next recording; at the `end` the newest rates, too. */
int budget_store_plan(struct budget *budget, const struct traced_image *image, bool end, struct error *err);

/* The same for all images now and then: a recorder that is killed leaves a plan, too. */
int budget_store_plans(struct budget *budget, uint64_t now_ns, struct error *err);

/* A function is not recorded completely any more, or is again; `now_ns`: CLOCK_REALTIME. */
int budget_gap_begin(struct budget *budget, uint32_t function, enum record_state state, uint64_t now_ns,
                     struct error *err);
int budget_gap_end(struct budget *budget, uint32_t function, uint64_t now_ns, struct error *err);

/* The gap of a function that has had all its calls recorded for a while ends. */
int budget_end_calm_gaps(struct budget *budget, uint64_t now_ns, struct error *err);

/* The gaps that are open end with the run. */
int budget_close_gaps(struct budget *budget, struct error *err);

/* ------------------------------------------------------------------------------------ totals.c */

/* Tags of the run: what was promised, and what it came to. */
int budget_store_totals(struct budget *budget, struct error *err);

#endif
