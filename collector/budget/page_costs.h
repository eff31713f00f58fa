/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What it costs that pages of code are copied, and which are worth it.
 *
 * The kernel writes a breakpoint into a copy of the page that each process has for itself. It costs even
 * where it is never hit: processes that take turns on a processor and run the same code find less of it in
 * the caches, once it is more than they hold. PostgreSQL with four clients, on a processor with 1 MiB for
 * each core, took 10 to 14 % more CPU time a request with 13,400 probes of which not one was hit, and none at
 * all when the 290 pages had no probes that requests run through (context_switches.h).
 */
#ifndef TRACECTL_COLLECTOR_BUDGET_PAGE_COSTS_H
#define TRACECTL_COLLECTOR_BUDGET_PAGE_COSTS_H

#include <stdbool.h>
#include <stddef.h>

#include "collector/budget/context_switches.h"

struct probed_page {
    double calls;       /* a second, of the function on it that is called most; INFINITY: often */
    unsigned functions; /* that have probes on it, or would have */
    double cost;        /* of the CPU time that all processes use */
    bool page_excluded; /* it is to have no probes */
};

/* Fills in what each page costs. `cache_bytes`: of a processor's own. Returns the sum. */
double page_costs_estimate(struct probed_page *pages, size_t count, const struct switch_rates *rates,
                           double processors, double cache_bytes);

/* Excludes pages until the others cost no more than `affordable`, those first that cost most for each
 * function that goes with them. Returns what the others cost; negative: -ENOMEM. */
double page_costs_exclude(struct probed_page *pages, size_t count, double affordable);

#endif
