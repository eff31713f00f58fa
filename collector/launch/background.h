/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Work that takes no more of busy processors than a budget allows.
 *
 * Before the first probe a recorder takes some tenths of a second: the kernel checks the programs, the
 * target's code is read. A service that keeps all processors busy would answer less meanwhile. So the thread
 * that does it runs where a processor is idle (SCHED_IDLE: any other thread that wakes up runs before it at
 * once, which a nice level does not give), and beside others for as long as it is behind what the budget
 * gives it.
 *
 * Not for work in which the kernel holds locks that the target waits for (backend/proxy.h), nor while a
 * process stands still.
 */
#ifndef TRACECTL_COLLECTOR_LAUNCH_BACKGROUND_H
#define TRACECTL_COLLECTOR_LAUNCH_BACKGROUND_H

struct background;

/* The calling thread stands back, so that of processors that others keep busy it takes about `share` of one
 * (0.05: five percent; three at least), until background_end() by the same thread. NULL: it does not stand
 * back, since the share is 0 or half of a processor, or since it might not come forward again. */
struct background *background_begin(double share);

/* Accepts NULL. */
void background_end(struct background *background);

#endif
