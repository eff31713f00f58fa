/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a probe costs on this host, measured at most once in a while: recordings that begin shortly after each
 * other have it from a file that does not outlive the boot.
 */
#ifndef TRACECTL_COLLECTOR_COST_KNOWN_COSTS_H
#define TRACECTL_COLLECTOR_COST_KNOWN_COSTS_H

#include "collector/cost/costs.h"

/* Where they are kept, for the user who measured them: only root can make it. */
#define KNOWN_COSTS_FOLDER "/run/tracectl"
#define KNOWN_COSTS_MINUTES 15

/* As probe_costs_measure(), or what that has found within the last KNOWN_COSTS_MINUTES with this kernel and
 * this tracectl. `folder`: KNOWN_COSTS_FOLDER, or a test's; where it cannot be written, they are measured
 * anew. */
void known_costs(const char *folder, struct probe_costs *ret_costs);

/* Its two halves. False: there are none that are known, or another user may have written them. */
bool known_costs_read(const char *folder, struct probe_costs *ret_costs);
void known_costs_keep(const char *folder, const struct probe_costs *costs);

#endif
