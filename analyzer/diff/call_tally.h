/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How often each function is called on either side of a difference. */
#ifndef TRACECTL_ANALYZER_DIFF_CALL_TALLY_H
#define TRACECTL_ANALYZER_DIFF_CALL_TALLY_H

#include "analyzer/diff/compare.h"

struct call_count {
    uint32_t symbol;
    uint64_t normal, faulty; /* at UINT64_MAX when there are more */
};

/* Made once, used for many threads: clearing costs as much as was counted. */
struct call_tally {
    struct call_count *counts; /* the functions that occurred, in order of their first occurrence */
    size_t count;
    uint32_t *slots; /* by symbol: index in counts + 1, or 0 */
};

/* Fails with -ENOMEM. */
int call_tally_init(struct call_tally *tally, const struct loop_summary *summary);
void call_tally_release(struct call_tally *tally);
void call_tally_clear(struct call_tally *tally);

/* Adds the calls of elements, loops expanded, to the one side; returns and lost places do not count. */
void call_tally_add(struct call_tally *tally, const struct loop_table *table,
                    const struct nlr_element *elements, size_t count, bool faulty);

/* Clears, and then adds all that is known of a matched thread: unknown edits are left out on both sides. */
void call_tally_thread(struct call_tally *tally, const struct loop_summary *summary,
                       const struct thread_diff *thread);

/* Functions that one side never calls first, then those with the largest difference; functions called as
 * often on both sides last. */
void call_tally_sort(struct call_tally *tally);

#endif
