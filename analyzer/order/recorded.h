/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where the threads of a recorded run were at its end, or at another moment: the calls that were open then.
 *
 * The place inside each of these functions, and the iterations of its loops, follow from the calls that the
 * activation has made (call_replay.h); of the innermost function only itself is known. A thread that had no
 * open call is not in the set.
 */
#ifndef TRACECTL_ANALYZER_ORDER_RECORDED_H
#define TRACECTL_ANALYZER_ORDER_RECORDED_H

#include "analyzer/order/order_tree.h"
#include "store/api/tracestore.h"

struct recorded_sample {
    struct sample_set *set;
    struct order_source source;
    size_t uncertain; /* threads whose open calls may have returned unseen: their returns were inferred */
    size_t unplaced;  /* calls of which it is not known where in their function they were made */
    struct order_point *points; /* private: of the set's stacks, in their order */
};

/* `at_ns`: the state behind the last event that happened at that time or before (CLOCK_REALTIME); 0: at the
 * end of the run. -ENODATA: the run kept no times; -EBADMSG: a segment is damaged; -ENOMEM, or what the store
 * says. */
int recorded_sample_new(struct tracestore *store, int64_t run_id, uint64_t at_ns,
                        struct recorded_sample **ret_recorded, struct error *err);
void recorded_sample_free(struct recorded_sample *recorded);

DEFINE_CLEANUP(cleanup_recorded_sample, struct recorded_sample *, recorded_sample_free)
#define AUTO_RECORDED_SAMPLE CLEANUP(cleanup_recorded_sample)

#endif
