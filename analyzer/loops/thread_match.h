/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which threads of several runs are the same one. A part of loop_summary.c.
 *
 * A process without an MPI rank is labelled by the order in which it appeared, and another launcher in front
 * of a program moves that of all that follow. So processes are matched by rank; by label, if they run the
 * same program; then by program, in their order; and by label, whatever they run, for what is left: that is
 * how a new version of a program with a new name is found. Threads of matched processes are matched by their
 * numbers, goroutines by how they were created (goroutine_match.h).
 */
#ifndef TRACECTL_ANALYZER_LOOPS_THREAD_MATCH_H
#define TRACECTL_ANALYZER_LOOPS_THREAD_MATCH_H

#include "analyzer/loops/loop_summary.h"

/* Fills in `key` of all threads of all runs and brings them into the order of their keys: those of the first
 * run are its labels, and threads of one key are the same one. */
int threads_match(const struct loop_source *sources, struct loop_summary *summary, struct error *err);

#endif
