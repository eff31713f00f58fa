/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The suspects of a comparison in the order of a ranking. */
#ifndef TRACECTL_ANALYZER_DIFF_COMPARE_RANK_H
#define TRACECTL_ANALYZER_DIFF_COMPARE_RANK_H

#include "analyzer/diff/compare.h"

struct ranking;

/* Orders the suspects by a ranking of the same runs. With several normal runs, what differs no more than they
 * do among themselves is no suspect any more, and a thread that not all of them have is no one-sided one. A
 * thread that could not be ranked because events are missing stays a suspect. */
void run_comparison_rank(struct run_comparison *comparison, const struct ranking *ranking,
                         size_t normal_runs);

#endif
