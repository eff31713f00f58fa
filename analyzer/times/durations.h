/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The durations of many calls, each exact or a range, and their percentiles. While all are exact, a call takes
 * 4 bytes (12 when it was longer than 4.2 s); from the first range on twice that.
 *
 * Percentiles of ranges are ranges: every order statistic grows with each of its values, so that it lies
 * between that of the lower bounds and that of the upper bounds.
 */
#ifndef TRACECTL_ANALYZER_TIMES_DURATIONS_H
#define TRACECTL_ANALYZER_TIMES_DURATIONS_H

#include <stddef.h>

#include "analyzer/times/time_range.h"

/* One bound of each duration. All zero is empty. */
struct duration_bounds {
    uint32_t *small; /* below UINT32_MAX */
    size_t small_count, small_capacity;
    uint64_t *large; /* all others */
    size_t large_count, large_capacity;
};

#define DURATION_OCTAVES 64

/* All zero is empty. */
struct durations {
    struct duration_bounds lower, upper; /* upper: empty while all durations are exact */
    size_t count, exact;
    /* A histogram: how many took from 2^i to 2^(i + 1) - 1 ns, [0] also 0 ns; ranges that do not lie within one
     * of these are in none. */
    size_t octaves[DURATION_OCTAVES];
};

void durations_release(struct durations *durations);

/* Fails with -ENOMEM; then nothing was added. */
int durations_add(struct durations *durations, struct time_range duration);

/* The value below which `percent` (0 to 100) of the durations lie, between two of them by linear interpolation
 * as SQL's percentile() does, rounded to a nanosecond. Changes the order of what is stored. Zeros when there
 * are none. */
struct time_range durations_percentile(struct durations *durations, double percent);

#endif
