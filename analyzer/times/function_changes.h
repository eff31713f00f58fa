/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What has changed between runs, function by function: how often it was called, and how long that took.
 *
 * Functions are the same when their names and the file names of their images are. A change is what lies outside
 * of what the baseline runs have among themselves. Times that are ranges have changed when the ranges do not
 * meet; with a single baseline run, which says nothing of how times vary, when they are at least
 * FUNCTION_CHANGE_NOISE apart.
 */
#ifndef TRACECTL_ANALYZER_TIMES_FUNCTION_CHANGES_H
#define TRACECTL_ANALYZER_TIMES_FUNCTION_CHANGES_H

#include "analyzer/times/function_times.h"

#define FUNCTION_CHANGE_NOISE 0.2

struct change_source {
    struct tracestore *store;
    int64_t run_id;
};

/* A function in one run; times that are not known are 0 to UINT64_MAX. */
struct change_side {
    uint64_t calls; /* 0: it was not called */
    struct time_range total, self, p99;
};

struct function_change {
    char *name, *image;               /* for people; the path of the image */
    struct change_side before, after; /* in the first baseline run, and in the candidate run */
    double change; /* the largest of its changes, relative to the larger value: 0 (none) to 1 */
};

struct function_changes {
    struct function_change *functions; /* the most changed first */
    size_t count, changed;             /* those that have changed come first */
    bool timed; /* both runs have the time of each event; without, calls only are compared */
};

/* `sources`: one or more baseline runs, then the candidate run. Decodes runs with times whole, of others only
 * the counts are read. Release what a success returned. Fails with -ENOMEM or what reading the stores met. */
int function_changes_read(const struct change_source *sources, size_t count,
                          struct function_changes *ret_changes, struct error *err);
void function_changes_release(struct function_changes *changes);

/* Orders those that have changed by how much the time in them alone differs, in nanoseconds, the most first: what
 * makes a run slower, where the order above shows what a function does differently. Ranges differ by the gap between
 * them. */
void function_changes_order_by_time(struct function_changes *changes);

#endif
