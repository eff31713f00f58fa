/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which goroutines of several runs are the same one. A part of thread_match.c.
 *
 * The runtime gives goroutines numbers in no fixed order, so those of matched processes are matched by how
 * they were created (equation 4.1 of Taheri's dissertation, 2022): the function that each began with and the
 * places of the go statements up to the main goroutine, which are their names in the store. Several of one
 * kind are matched in the order of their numbers. What is left, since lines have moved, is matched by the
 * function alone.
 */
#ifndef TRACECTL_ANALYZER_LOOPS_GOROUTINE_MATCH_H
#define TRACECTL_ANALYZER_LOOPS_GOROUTINE_MATCH_H

#include "analyzer/loops/loop_summary.h"

/* Gives the goroutines of `run`, whose processes' keys are those of their threads by now, the keys of the
 * first run's. */
int goroutines_match(const struct loop_source *first_source, const struct run_loops *first,
                     const struct loop_source *source, struct run_loops *run, struct error *err);

#endif
