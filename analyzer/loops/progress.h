/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How far threads are through their loops, compared with their peers: nested loop recognition as "a
 * per-thread measure of progress" (DiffTrace, section 2).
 *
 * The outer loops of a thread are the loops in its summary, those inside others left out. Peers are threads
 * whose first outer loop has the same body. A thread's position is the number of iterations of its outer
 * loops, those left out whose body none of its peers has in an outer loop. What it is compared with is the
 * furthest position among itself and its peers.
 */
#ifndef TRACECTL_ANALYZER_LOOPS_PROGRESS_H
#define TRACECTL_ANALYZER_LOOPS_PROGRESS_H

#include "analyzer/loops/loop_summary.h"

struct thread_progress {
    bool known;                    /* else events are missing, or there is no loop, or no peer: all is 0 */
    uint32_t loop;                 /* the body of the first outer loop */
    size_t peers;                  /* known ones, the thread itself not counted */
    uint64_t iterations, furthest; /* at most UINT64_MAX */
};

/* Fills in `ret_progress` for each thread of the run, in their order. -ENOMEM. */
int progress_of_run(const struct run_loops *run, struct thread_progress *ret_progress);

#endif
