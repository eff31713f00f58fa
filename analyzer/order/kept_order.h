/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where the threads of running processes were when a recording of them ended, kept in the store.
 *
 * Of a process that was there before its recording the calls around the first recorded one are not in any
 * stream. Its threads' stacks have them, and their loops' variables the iterations: the ordered tree of a
 * look at the live processes, just before the probes go, is kept with the run.
 *
 * Tables: end_nodes, end_iterations, end_threads (docs/sql.md). What is read is
 * checked: rows that do not fit together are -EBADMSG.
 */
#ifndef TRACECTL_ANALYZER_ORDER_KEPT_ORDER_H
#define TRACECTL_ANALYZER_ORDER_KEPT_ORDER_H

#include "analyzer/order/order_tree.h"
#include "store/api/tracestore.h"

/* Keeps the tree with the run, which is in the store. An error leaves the store as it was. */
int kept_order_write(struct tracestore *store, int64_t run_id, const struct order_tree *order,
                     struct error *err);

/* What was kept of a run. All zero: nothing. */
struct kept_order {
    struct kept_node {
        struct order_point point;
        uint32_t parent; /* of kept_order.nodes; PREFIX_NONE: an outermost call */
        uint32_t place;  /* of the set */
    } * nodes;
    size_t node_count, node_capacity;
    struct kept_thread {
        struct sample_thread thread; /* with texts of the set; `process` and `tid` are of the recorded host */
        uint32_t node;               /* its innermost call; PREFIX_NONE: its stack is not known */
    } * threads;
    size_t thread_count, thread_capacity;
};

/* Places, images and texts become those of `set`; threads are not added to it. Nothing was kept: none. */
int kept_order_read(struct tracestore *store, int64_t run_id, struct sample_set *set,
                    struct kept_order *ret_kept, struct error *err);
void kept_order_release(struct kept_order *kept);

#endif
