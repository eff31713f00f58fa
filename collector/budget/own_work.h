/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the recorder's own work costs the target, where no processor is idle. */
#ifndef TRACECTL_COLLECTOR_BUDGET_OWN_WORK_H
#define TRACECTL_COLLECTOR_BUDGET_OWN_WORK_H

#include <stdint.h>

/* When a piece of work on the target began: what the recorder and the target had used by then, and how many
 * inline calls had been read. All zero: at the start. */
struct own_work {
    uint64_t own_ns, target_ns, ns, calls;
    double share; /* of the target's time, as of late */
};

/* What this process has used of processors, with the helpers that it has waited for. */
uint64_t own_work_cpu_ns(void);

/* The part of the recorder's work that the target is kept from running by, where no processor is idle: one
 * that keeps a tenth of a processor busy misses it a tenth of the time; other programs that run there pay the
 * rest. */
static inline double own_work_missed_part(double used, double elapsed)
{
    return used < elapsed ? used / elapsed : 1;
}

/* What `took` nanoseconds of the recorder's work have cost a target that used `used` of them in `elapsed` of
 * time, as a share of `used`: where no processor was idle (`contended`, a part of the time), and up to half
 * of the budget `share`, so that the other half is there for hits. */
static inline double own_work_cost(double took, double used, double elapsed, double contended, double share)
{
    double part = contended * own_work_missed_part(used, elapsed);
    double cost = took > 0 && used > 0 ? part * took / used : 0;

    return cost < share / 2 ? cost : share / 2;
}

#endif
