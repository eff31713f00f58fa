/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The way of an area's memory into a process: private to live_patch.c. */
#ifndef TRACECTL_COLLECTOR_INLINE_LIVE_AREA_H
#define TRACECTL_COLLECTOR_INLINE_LIVE_AREA_H

#include "collector/inline/live_patch.h"
#include "collector/ptrace/remote.h"

/* Maps the patch's area into the process of a session: its head, agent and stubs at `patch->head`, its rings
 * where the kernel chooses, unless (`joins`) the process has them. All of it or nothing. -EEXIST: there is
 * something at `head` by now; -ENOTSUP: what it maps is locked in memory; -ENOSPC: no address gap; -EMFILE and
 * the like. */
int live_area_bring(struct remote *remote, const struct live_patch *patch, bool joins, struct error *err);

/* Puts memory of the process's own wherever it has the data file of the area mapped. Errors: it still has it.
 */
int live_area_part(struct remote *remote, const struct agent_area *area, struct error *err);

#endif
