/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The shortest edit between two sequences: E. W. Myers, "An O(ND) Difference Algorithm and Its Variations",
 * Algorithmica 1 (1986), in linear space (section 4b), without heuristics.
 */
#ifndef TRACECTL_ANALYZER_DIFF_MYERS_H
#define TRACECTL_ANALYZER_DIFF_MYERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Elements are equal when their numbers are; numbers should be dense (memory grows with the largest). Sets
 * a_only[i] where a[i] is deleted and b_only[i] where b[i] is inserted, and the rest to false: what is false
 * on either side is one longest common subsequence, in order. Time O((n + m) D) for D edits, memory O(n + m +
 * largest number). Fails with -ENOMEM, and with -EOVERFLOW for 2^31 elements on a side. */
int myers_diff(const uint32_t *a, size_t n, const uint32_t *b, size_t m, bool *a_only, bool *b_only);

#endif
