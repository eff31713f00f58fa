/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A function of a run with what its calls took, for text and JSON. */
#ifndef TRACECTL_CLI_ANALYSIS_TOP_ROW_H
#define TRACECTL_CLI_ANALYSIS_TOP_ROW_H

#include <jansson.h>

#include "analyzer/times/function_times.h"

struct top_row {
    char *name, *spelled; /* for people; as the image spells it */
    char *image, *file;   /* file "": not known */
    int64_t line, threads;
    uint64_t calls;
    bool muted;                /* not all calls were recorded */
    double missed;             /* how many more there were, estimated; 0: unknown, or none */
    double missed_per_second;  /* the rate when it was last measured; 0: unknown */
    struct function_time time; /* its durations are those of the function_times that it was read from */
};

void top_row_release(struct top_row *row);

/* {"function", "name", "image", "file", "line", "calls", "percent", "threads", "muted", "missed_calls",
 * "missed_per_second" (estimates, null: unknown or none), "returned", "exact"} and
 * the times: null where they are not exact. "min_ns" and "max_ns" are the shortest and the longest call where
 * times are exact, and else the bounds of what all calls took together; "total_min_ns", "total_max_ns",
 * "self_min_ns" and "self_max_ns" are bounds in any case. `all`: the calls of the run. */
json_t *top_row_json(const struct top_row *row, uint64_t all);

/* The same with "histogram": [{"from_ns", "to_ns", "calls"}], and in "unplaced" the calls whose range is wider
 * than one of its steps. */
json_t *top_row_json_histogram(const struct top_row *row, uint64_t all);

/* Name, sums, percentiles and the histogram, as text. */
void top_row_print(const struct top_row *row);

#endif
