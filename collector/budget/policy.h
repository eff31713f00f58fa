/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The policy of a budget: which functions are excluded, and which come back, so that recording costs no more
 * than a share of the CPU time that the target needs itself.
 *
 * The cost of calls is estimated: the number of hits of each probe, times the measured cost of a hit. The
 * target's own time is what it has used beyond that. A bucket is filled with the share of the own time and
 * emptied by the hits. When it is empty, the functions that cost most are excluded until the others fit, so
 * that rarely called ones stay in any case. An excluded function costs nothing, and its calls are unknown: it
 * comes back on trial, after a pause that doubles each time the trial failed. As many come together as the
 * bucket can pay by what they cost before: until it shows that one is still hot, some hundredths of a second,
 * its hits are paid for.
 *
 * Units of which only a guess is known, when a recording of a busy program begins, wait and come in by slow
 * start: the coolest first, one, then two, four, ... as long as none of them is excluded again.
 *
 * The cost of a unit is paid back with calls that are not recorded. So units go first whose calls are dear,
 * and cheap ones after them. But dear units that cost next to nothing in sum would not help: they go last.
 *
 * A unit that has probes and cost nothing for a while can be skipped: policy_is_quiet().
 *
 * A target that needs little is not slowed down by what is little, too: it counts as if it needed a tenth of
 * a CPU.
 *
 * Pure arithmetic. In: the costs of units, the CPU time of the target, the time. Out: probe_unit.excluded.
 */
#ifndef TRACECTL_COLLECTOR_BUDGET_POLICY_H
#define TRACECTL_COLLECTOR_BUDGET_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is excluded as a whole: a function, or functions that share a probe. All zero: it has its probes. */
struct probe_unit {
    uint64_t cost_ns;   /* of all its hits so far: the caller's to count */
    bool excluded;      /* is to have no probes; after policy_decide() the caller sees to it */
    bool fixed;         /* it keeps its probes whatever their cost: the caller's to say */
    bool page_excluded; /* and is not tried: policy_exclude_page() */
    bool cheap;         /* its calls cost so little each that others are to go before: the caller's to say */
    double scale;       /* it is in in this part of the target: 17 = a seventeenth; 0, 1: in all of it */
    bool active;        /* it is in the active set: the caller's own */

    /* The policy's own. */
    unsigned rank;                    /* when some are excluded: the lower ones go first */
    bool trial;                       /* it is in to see whether it can stay */
    bool waits;                       /* it has never been in */
    uint32_t profile_samples;         /* of one that waits: a guess; more is hotter */
    double expected;                  /* CPU nanoseconds a nanosecond, when it was in last; 0: not known */
    uint64_t seen_ns;                 /* of cost_ns, at the last sample */
    double recent_ns, recent_span_ns; /* what it took in what time; older costs count less and less */
    uint64_t changed_ns, retry_ns, pause_ns;
};

struct budget_policy {
    double share;    /* 0.05: five percent of the target's own CPU time */
    double standing; /* of the time that the target uses: the cost without any hit, the caller's to say */
    double bucket_ns;
    double recent_own_ns, recent_span_ns;
    bool own_is_guess; /* more was counted for the hits than the target has used since the sample before */
    uint64_t seen_cpu_ns, seen_ns; /* at the last sample; times are CLOCK_MONOTONIC */
    uint64_t raised_ns;            /* when units were let in last */
    size_t batch;                  /* so many of those that wait come together */
    uint64_t paid_ns, used_ns; /* so far: what hits took by estimate, what the target has used with them */
    double worst_share;        /* the most that a second took, of the own time in it */
    double second_paid_ns, second_own_ns, second_ns;
};

void policy_start(struct budget_policy *policy, double share);

/* Before the first decision the target has paid so much more than its share, nanoseconds: no unit is tried
 * before that is made up for, as far as it is ever. */
void policy_owe(struct budget_policy *policy, double ns);

/* Decides which units are excluded from now on (probe_unit.excluded). All are given that are excluded, on
 * trial, or have cost something of late; the others may be. `cpu_ns`: what the target's processes have used
 * so far, probes included; a smaller number than before (a process has ended) only begins the sum anew.
 * Returns whether any unit has changed. To be asked every few hundredths of a second. -ENOMEM. */
int policy_decide(struct budget_policy *policy, struct probe_unit *const *units, size_t count,
                  uint64_t now_ns, uint64_t cpu_ns);

/* Whether policy_decide() can do without the unit until its cost grows: then it has taken nothing, for long
 * enough. */
bool policy_is_quiet(struct probe_unit *unit);

/* The unit is excluded from the start, since it was at the end of an earlier recording: it will be tried
 * soon. `expected`: the CPU time that it took of a time then; 0: not known. */
void policy_expect_hot(struct probe_unit *unit, double expected, uint64_t now_ns);

/* The unit is excluded from the start, since it may be hot: it comes in by slow start. `profile_samples`: of
 * the stack profile. */
void policy_let_wait(struct probe_unit *unit, uint32_t profile_samples, uint64_t now_ns);

/* The unit is excluded from now on, whatever its hits cost, or may come back. Returns whether it had probes.
 */
bool policy_exclude_page(struct probe_unit *unit, bool page_excluded, uint64_t now_ns);

/* The unit could not get its probes: it stays excluded for a while. */
void policy_keep_excluded(struct probe_unit *unit, uint64_t now_ns);

/* Whether samples should come in quick succession: the recording, or a trial, has just begun, or too much is
 * taken. */
bool policy_is_alert(const struct budget_policy *policy, uint64_t now_ns);

#endif
