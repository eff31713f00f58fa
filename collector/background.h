/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Work that takes no more of busy processors than a budget allows.
 *
 * Before the first probe a recorder takes some tenths of a second: the kernel checks the programs, the
 * target's code is read. A service that keeps all processors busy would answer less meanwhile. So the thread
 * that does it stands back as far as the budget says. Where a processor is idle that makes no difference.
 *
 * Not for work in which the kernel holds locks that the target waits for (backend/proxy.h), nor while a
 * process stands still.
 */
#ifndef TRACECTL_COLLECTOR_BACKGROUND_H
#define TRACECTL_COLLECTOR_BACKGROUND_H

struct background {
    int nice; /* before */
    int changed;
};

/* The calling thread stands back, so that of processors that others keep busy it takes about `share` (0.05:
 * five percent of all of them). 0: it does not. Nor does it where it might not come forward again. */
struct background background_begin(double share);
void background_end(const struct background *background);

#endif
