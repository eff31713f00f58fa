/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a hit costs the traced thread, in nanoseconds: what a plan weighs its sites with. */
#ifndef TRACECTL_COLLECTOR_PLAN_COST_H
#define TRACECTL_COLLECTOR_PLAN_COST_H

#include <stdint.h>

#include "collector/plan/site.h"

struct site_costs {
    uint32_t call_emulated;
    uint32_t call_single_stepped;
    uint32_t ret; /* what a return probe adds to either */
};

/* Measured in a virtual machine on Linux 6.18, where a single step is dear (docs/architecture.md). On the
 * machine itself it is three times an emulated hit. */
#define SITE_COSTS_DEFAULT \
    ((struct site_costs){.call_emulated = 550, .call_single_stepped = 10200, .ret = 350})

static inline uint32_t site_cost(const struct site_costs *costs, enum site_class class)
{
    return class == SITE_EMULATED ? costs->call_emulated : costs->call_single_stepped;
}

#endif
