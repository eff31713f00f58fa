/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to collector/budget/: what its parts share. */
#ifndef TRACECTL_COLLECTOR_BUDGET_BUDGET_STATE_H
#define TRACECTL_COLLECTOR_BUDGET_BUDGET_STATE_H

#include "bpf/wire.h"
#include "collector/budget/budget.h"
#include "collector/budget/context_switches.h"
#include "collector/budget/cpu_contention.h"
#include "collector/budget/policy.h"

#define BUDGET_RECENT_NS 1000000000.0 /* how often a function is called is judged by about so much */

/* What hits take, with what they do to the target's caches. */
struct budget_costs {
    double emulated_ns, single_stepped_ns; /* of a call that is recorded */
    double skipped_ns;                     /* so much less, of one that is not */
    double return_ns;                      /* so much more, of one whose return is probed */
    double inline_ns;                      /* of a call that an inline probe sees, recorded or lost */
    double read_ns;                        /* to read it, on a processor that the target would have had */
};

/* By index, as cookies have it. */
struct budget_probe {
    uint32_t function;
    uint32_t recorded_ns, missed_ns;
    bool is_return;                     /* on a RET */
    uint64_t recorded, missed, outside; /* at the last look */
    uint64_t early;                     /* when its group was complete, before the recording began */
};

/* By number. Its unit is that of `unit`, the least number of all functions that go in and out with it. */
struct budget_function {
    bool probed, inlined; /* has uprobes or an inline probe; the latter */
    bool met;             /* processes ran it when they were sampled */
    uint32_t unit;
    enum record_state state;
    uint64_t recorded, missed, missed_reported; /* calls; the last: in rows of `blind` that have ended */
    uint64_t from_ns, last_missed_ns;           /* of the row that is open, CLOCK_REALTIME; CLOCK_MONOTONIC */
    double recent_calls, recent_span_ns;        /* older ones count less and less */
    double inline_weight; /* calls that inline probes recorded, those of the look before count half */
    bool ahead;           /* its inline probe is in in one process only, see inline_moves.c */
    bool awake;           /* it is in budget.awake */
    bool planned;         /* the plan in the store has it outside */
};

/* What a look looks at: those that are called, or are not in. */
struct budget_active_set {
    uint32_t *functions; /* numbers */
    struct probe_unit **units;
    size_t count, unit_count, capacity, unit_capacity; /* with room for all */
    uint64_t chosen_ns;                                /* when those were left out that sleep */
};

struct budget_image {
    struct traced_image *image;
    bool apart; /* it is probed process by process */
    size_t group_size;
    struct process_switches *switches; /* its processes when it was last looked at their turns */
    size_t switches_count;
    uint64_t switches_ns, chosen_ns; /* when that was; when pages were chosen */
    double pages_cost,
        kept_cost; /* of the target's time, of all pages then and of those that may have probes */
    pid_t ahead;   /* where functions with inline probes are tried before the other processes get them; 0:
                      nowhere */
    uint64_t ahead_cpu_ns; /* what it had used at the last look */
};

/* Places of an image whose probes are one part of the backend's. */
struct budget_group {
    size_t image; /* index in budget.images */
    unsigned part;
    size_t *sites, count;
    bool dropped;                 /* its link is gone, or is being closed */
    uint64_t complete_ns, cpu_ns; /* before the recording begins: since when it has all its probes, and what
                                     the target had used by then */
};

/* When a piece of work on the target began: what the recorder and the target had used. */
struct budget_effort {
    uint64_t own_ns, target_ns, ns, calls;
};

/* Which part of the recorder's work the target is kept from running by, where no processor is idle: one that
 * keeps a tenth of a processor busy misses it a tenth of the time; whoever else runs there pays the rest. */
static inline double budget_missed_part(double used, double elapsed)
{
    return used < elapsed ? used / elapsed : 1;
}

/* What the recorder's work, `took` nanoseconds of it, has cost a target that used `used` of them in `elapsed`
 * of time, as a share of `used`: where no processor was idle (`crowded`, a part of the time), and up to half
 * of the budget, so that the other half is there for hits. */
static inline double budget_own_cost(double took, double used, double elapsed, double crowded, double share)
{
    double part = crowded * budget_missed_part(used, elapsed);
    double cost = took > 0 && used > 0 ? part * took / used : 0;

    return cost < share / 2 ? cost : share / 2;
}

struct budget {
    struct budget_options options;
    struct budget_costs costs;
    struct cpu_contention contention;
    struct budget_slot *slots;
    struct budget_policy policy;
    struct budget_probe *probes;
    size_t probe_count, probe_capacity;
    struct budget_function *functions; /* with their units, which policy_decide is given */
    struct probe_unit *units;
    struct budget_active_set awake;
    bool *applied;        /* whether the unit is out in fact */
    bool *marked;         /* a scratch area, by function */
    uint32_t *inline_new; /* calls by inline probes since the last look, by function */
    size_t function_count, function_capacity, unit_capacity, applied_capacity, marked_capacity;
    size_t inline_capacity;
    uint64_t inline_lost;             /* since the last look */
    uint64_t inline_calls, inline_ns; /* all so far, the lost ones too; what they took */
    struct budget_image *images;
    size_t image_count, image_capacity;
    struct budget_group *groups;
    size_t group_count, group_capacity;
    struct budget_effort effort;
    double pages_share; /* what copies of pages take of the target's time */
    double own_share;   /* what the recorder takes of it where no processor is idle, but for reading calls */
    unsigned parts;     /* given out so far */
    bool relinking;
    bool urgent;                  /* calls have begun to be left out */
    uint64_t sampled_ns, used_ns; /* the last look; what the target had used by then */
    uint64_t planned_ns;          /* when the plan was stored */
    uint64_t early_ns;            /* what hits took before the recording began */
    uint64_t early_calls;         /* inline ones among them */
    bool attached_running;        /* there were processes that ran */
    uint64_t begun_cpu_ns;        /* what they had used before the first image had probes */
    uint64_t begun_ns;            /* when that was */
    double ramp_up_share;         /* what those take that have got their probes then, of the target's time */
    bool is_idle;                 /* as far as the last group showed */
    double busy;                  /* processors, as the last groups showed; 0: not known */
};

/* A function is called, or is not in: the next looks are to look at it. */
static inline void budget_activate(struct budget *budget, uint32_t number)
{
    struct budget_function *function = &budget->functions[number];
    struct probe_unit *unit = &budget->units[function->unit];
    struct budget_active_set *awake = &budget->awake;

    if (!function->awake)
        awake->functions[awake->count++] = number;
    if (!unit->awake)
        awake->units[awake->unit_count++] = unit;
    function->awake = unit->awake = true;
}

/* All are looked at in the next look. */
void budget_activate_none(struct budget *budget);

/* Lets those sleep, once a second, that have not been called for so long that nothing is left of it, and
 * wakes all others. */
void budget_choose_active(struct budget *budget, uint64_t now_ns);

/* What an inline call costs at present, nanoseconds. */
static inline double budget_inline_cost(const struct budget *budget)
{
    return budget->costs.inline_ns + budget->contention.part * budget->costs.read_ns;
}

/* The probes are moved so that they are what the policy wants. */
int budget_relink(struct budget *budget, struct error *err);

/* Inline probes go and come so that they are what the policy wants; those that are on trial in one process
 * first, where there are several. */
int budget_move_inline(struct budget *budget, struct error *err);

/* The same of one image, without anything that is tried anew. */
int budget_change_inline(struct budget *budget, const struct budget_image *place, struct error *err);

/* Whether functions that were tried in one process can go to the others, or need another one. */
bool budget_trials_move(const struct budget *budget);

/* What is on trial in one process counts for all of them. `cpu_ns`: what all have used. */
void budget_scale_trials(struct budget *budget, uint64_t cpu_ns);

/* Makes a group of `sites`, which it takes over, and attaches it: its hits count from then on. */
int budget_add_group(struct budget *budget, size_t image, size_t *sites, size_t count, struct error *err);

/* What has been seen since one more process has inline probes, nanoseconds: how long that was, and how much
 * all processes that have them have run, born with them or not. */
struct budget_exposure {
    double elapsed, ran;
};

/* Calls were seen for `calls_span` and processes for `ran_span` nanoseconds, in which they ran for `ran`. The
 * two are looked at one after the other; a recorder that is kept from it in between, where no processor is
 * free, would take what was called in one time for what was run in another. */
struct budget_exposure budget_exposure_of(double calls_span, double ran, double ran_span);

/* Takes the hottest functions with inline probes out if what was seen of them (budget.inline_new,
 * inline_lost) is more than the budget, unless they have run too little to tell. Returns how many, or
 * -ENOMEM.
 */
int budget_choose_inline(struct budget *budget, const struct budget_exposure *contact);

/* What this process has used of processors, with the helpers that it has waited for. */
uint64_t budget_own_cpu_ns(void);

/* From here on it is seen what the recorder takes. */
void budget_mark_effort(struct budget *budget);

/* What it has taken since, nanoseconds of processor time, but for reading calls, which are counted for that.
 */
double budget_own_work(const struct budget *budget);

/* Waits. False: the recording is to end. */
bool budget_pause(const struct budget *budget, double ns);

/* Before anything is recorded, the newest group has its probes since `from_ns` in a program that runs: takes
 * those functions out that are called too often, and waits until what that took is within the budget. */
int budget_ramp_up_group(struct budget *budget, uint64_t from_ns, struct error *err);

/* How many of the `most` places that are left of a group are to be met at once. */
size_t budget_piece(const struct budget *budget, size_t group_size, size_t most);

/* The groups from number `first` on have been met, when those before them took `ramp_up_share`: takes out who
 * turns out to be called too often after all; if there is anybody, the others become one group. */
int budget_judge_groups(struct budget *budget, size_t first, double ramp_up_share, struct error *err);

/* All groups from number `first` on, one or more, become one without functions that are out by now, when
 * nothing is recorded. */
int budget_join_groups(struct budget *budget, size_t first, struct error *err);

/* Looks at the turns of an image's processes since the last time, and bars functions on pages that they share
 * and are busy with. -ENOMEM, or whether any has to go. */
int budget_sample_pages(struct budget *budget, struct budget_image *image, uint64_t now_ns);

/* The same when these are the turns: chooses anew where that costs another sum than the last time. */
int budget_exclude_pages(struct budget *budget, struct budget_image *image, const struct turns *turns,
                         uint64_t now_ns);

/* What the plan for the next recording is to say of a function: calls a second of one that is to begin
 * outside, 0 of one that is to begin inside; negative: what it said before. */
double budget_planned(const struct budget *budget, uint32_t function);

/* The functions that the last recording of this binary left out are out. */
int budget_read_plan(struct budget *budget, const struct traced_image *image, uint64_t now_ns,
                     struct error *err);

/* Writes what is new about it for the next recording; at the `end` the newest rates, too. */
int budget_store_plan(struct budget *budget, const struct traced_image *image, bool end, struct error *err);

/* The same for all images now and then: whoever is killed leaves a plan, too. */
int budget_store_plans(struct budget *budget, uint64_t now_ns, struct error *err);

/* A function is not seen completely any more, or is again; `now_ns`: CLOCK_REALTIME. */
int budget_blind_begin(struct budget *budget, uint32_t function, enum record_state state, uint64_t now_ns,
                       struct error *err);
int budget_blind_end(struct budget *budget, uint32_t function, uint64_t now_ns, struct error *err);

static inline struct probe_unit *budget_unit(const struct budget *budget, uint32_t function)
{
    return &budget->units[budget->functions[function].unit];
}

/* A function is out until it is tried again; `took`: CPU nanoseconds a nanosecond. */
static inline void budget_exclude(struct budget *budget, uint32_t function, double calls_per_second,
                                  double took, uint64_t now_ns)
{
    budget->functions[function].recent_calls = calls_per_second;
    budget->functions[function].recent_span_ns = 1e9;
    policy_expect_hot(budget_unit(budget, function), took, now_ns);
}

static inline bool budget_is_ahead(const struct budget *budget, uint32_t function)
{
    return budget->functions[function].ahead && budget_unit(budget, function)->trial;
}

/* Whether a function's probes are to be taken out of the target now, or to come into all of it. */
static inline bool budget_goes(const struct budget *budget, uint32_t function)
{
    uint32_t unit = budget->functions[function].unit;

    return budget->units[unit].out && !budget->applied[unit];
}

static inline bool budget_comes(const struct budget *budget, uint32_t function)
{
    uint32_t unit = budget->functions[function].unit;

    return !budget->units[unit].out && budget->applied[unit] && !budget_is_ahead(budget, function);
}

static inline double budget_calls_per_second(const struct budget_function *function)
{
    return function->recent_span_ns > 0 ? function->recent_calls / function->recent_span_ns * 1e9 : 0;
}

#endif
