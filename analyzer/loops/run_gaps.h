/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a run did not see, from the tables `losses` and `blind` of its store. A part of loop_summary.c. */
#ifndef TRACECTL_ANALYZER_LOOPS_RUN_GAPS_H
#define TRACECTL_ANALYZER_LOOPS_RUN_GAPS_H

#include "analyzer/loops/loop_summary.h"

/* Fills everything of `run` but its threads. */
int run_gaps_read(const struct loop_source *source, struct run_loops *run, struct error *err);
void run_gaps_release(struct run_loops *run);

/* How many events a lost event of a thread stands for, and why; "unknown" when the catalog does not say. */
void run_gaps_find(const struct loop_source *source, int64_t thread_id, uint64_t seq,
                   struct loop_gap *ret_gap);

bool run_gaps_has_unplaced(const struct run_loops *run, const char *label);

#endif
