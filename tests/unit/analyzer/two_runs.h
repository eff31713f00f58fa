/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the tests of comparisons share: two runs made of texts, a letter a call, '?' a lost place. */
#ifndef TRACECTL_TESTS_ANALYZER_TWO_RUNS_H
#define TRACECTL_TESTS_ANALYZER_TWO_RUNS_H

#include "analyzer/diff/compare.h"

enum { MOST_THREADS = 16, LONGEST_TEXT = 64 };

/* As loop_summary_read would leave them: threads 0.0, 1.0, ... of the normal and of the faulty run. Symbols
 * are named as their letters, but F, I, K, R, S and Z after functions of MPI. Release it. */
struct loop_summary two_runs(char texts[2][MOST_THREADS][LONGEST_TEXT], size_t count);
struct loop_summary one_thread(const char *normal, const char *faulty);

#endif
