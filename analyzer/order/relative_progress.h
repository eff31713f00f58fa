/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Relative progress inside one function: which of two points a thread passes first.
 *
 * Ahn et al., "Scalable Temporal Order Analysis for Large Scale Debugging", definitions 3.1 to 3.4: a point
 * is a row of positions and iteration counts, from the function through its loops inwards, and rows are
 * compared from the left. So of the loops that hold both points the outermost comes first, and its iteration
 * count decides before anything inside; where all counts are equal, position decides: the point that can be
 * reached from the other one, and not the other way round, is ahead (flow_graph_order()). Points on different
 * branches are incomparable (definition 3.3).
 *
 * A count that is not known does not decide: what then follows from positions holds only if both threads are
 * in the same iteration, and is marked so (`assumed`).
 */
#ifndef TRACECTL_ANALYZER_ORDER_RELATIVE_PROGRESS_H
#define TRACECTL_ANALYZER_ORDER_RELATIVE_PROGRESS_H

#include "analyzer/order/code.h"

/* Loops in loops: the counts of deeper ones are not known. */
#define ORDER_LOOPS_MAX 8

struct order_iteration {
    bool known;
    uint64_t count; /* iterations that are behind the thread: 0 in the first one */
};

/* A point in the code of a function, as a thread stands there. */
struct order_point {
    uint64_t address;
    uint32_t depth; /* of the loops around the address, no more than ORDER_LOOPS_MAX */
    struct order_iteration iterations[ORDER_LOOPS_MAX]; /* the outermost first */
};

enum order_relation {
    ORDER_SAME,
    ORDER_BEHIND, /* the first is behind the second */
    ORDER_AHEAD,
    ORDER_INCOMPARABLE, /* on different branches */
    ORDER_UNKNOWN,      /* what the code does is not understood well enough */
};

struct order_answer {
    enum order_relation relation;
    bool assumed;  /* it holds if both are in the same iteration of `loop` */
    uint32_t loop; /* whose iterations decided, or are assumed to be equal; FLOW_NONE: positions decided */
};

/* The loops around `address`, the outermost first. Returns how many are written, no more than
 * ORDER_LOOPS_MAX. */
uint32_t order_loops_around(const struct flow_graph *graph, uint64_t address,
                            uint32_t loops[ORDER_LOOPS_MAX]);

/* Compares two points of `function`. -ENOMEM, or 0. */
int order_compare(const struct order_function *function, const struct order_point *a,
                  const struct order_point *b, struct order_answer *ret_answer);

/* What order_rank() says of a point. */
struct order_place {
    uint32_t rank; /* the length of the longest chain of points behind this one: 0 for the least progressed */
    bool assumed;  /* it holds only if iterations that are not known are equal */
    bool unordered; /* to one of the other points there is no order */
};

/* The temporal ranks of `count` different points of `function`. Points with equal counts and addresses are
 * the same. Takes O(n log n) for points that differ by iterations, and O(n^2) for different addresses (of
 * which there are few). -ENOMEM, or 0. */
int order_rank(const struct order_function *function, const struct order_point *points, size_t count,
               struct order_place *ret_places);

#endif
