/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Threads in a sentence: "0.0-4.0, 7.0". */
#ifndef TRACECTL_ANALYZER_DIFF_VERDICT_THREADS_H
#define TRACECTL_ANALYZER_DIFF_VERDICT_THREADS_H

#include <stdio.h>

#include "analyzer/diff/compare.h"

/* "1.0-4.0, 6.0 and 3 more" for threads of the comparison, given by their indices. */
void diff_verdict_threads(FILE *out, const struct run_comparison *comparison, const size_t *threads,
                          size_t count);

#endif
