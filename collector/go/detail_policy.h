/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How much is recorded of a Go program's goroutines, so that the probes take no more than a share of the CPU
 * time that the program needs itself.
 *
 * A program that needs little is not slowed down by what is little, too: it counts as if it needed half a
 * CPU.
 *
 * The time that hits take is what each was measured to take, added up; the program's own time is what it has
 * used beyond that. A bucket is filled with the share of the program's time and emptied by the hits. When it
 * is empty, as many of the dearer probes are taken away as must be, judged by what they took since the last
 * look; each of the steps up again waits for a second at least, and twice as long as before when the step
 * before did not hold.
 */
#ifndef TRACECTL_COLLECTOR_GO_DETAIL_POLICY_H
#define TRACECTL_COLLECTOR_GO_DETAIL_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "store/streams/go_events.h"

struct go_budget {
    double share; /* 0.05: five percent of the program's own CPU time; 0: no limit */
    uint32_t emulated_ns, single_stepped_ns; /* what a hit takes */
};

struct go_detail_policy {
    struct go_budget budget;
    enum go_detail detail, most;  /* what is recorded, and what is wanted */
    uint64_t cost_ns[GO_DETAILS]; /* of all hits, by the least detail that they are seen with */
    double bucket_ns;
    double recent_cost_ns[GO_DETAILS], recent_own_ns;        /* older ones count less and less */
    uint64_t seen_cost_ns[GO_DETAILS], seen_cpu_ns, seen_ns; /* at the last look */
    uint64_t raised_ns, retry_ns, pause_ns; /* CLOCK_MONOTONIC; the last two: of the next step up */
};

/* Begins with everything that is wanted. */
void go_detail_policy_start(struct go_detail_policy *policy, const struct go_budget *budget,
                            enum go_detail most);

/* A hit of a probe that is there from `detail` on. */
void go_detail_policy_hit(struct go_detail_policy *policy, enum go_detail detail, bool single_stepped);
/* Hits whose records did not fit. */
void go_detail_policy_lost(struct go_detail_policy *policy, uint64_t count);

/* What is to be recorded from now on. `cpu_ns`: what the program's processes have used so far, probes
 * included; a smaller number than before (a process has ended) only begins the sum anew. To be asked some
 * fifty times a second. */
enum go_detail go_detail_policy_decide(struct go_detail_policy *policy, uint64_t now_ns, uint64_t cpu_ns);

#endif
