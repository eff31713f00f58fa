/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Loop order variables: how many iterations of a loop a thread has behind it, from a register or a word of
 * its frame.
 *
 * After Ahn et al., "Scalable Temporal Order Analysis for Large Scale Debugging", section 4.2 and figure 4: a
 * variable orders the iterations of a loop when it has the same values in all tasks and each iteration makes
 * it larger, or each smaller. Where the paper reads the source, this reads the instructions (flow_values.h),
 * and asks for more, so that a value is not only an order but a number of iterations:
 *
 * - every way through the loop's body adds the same constant, not 0 (the paper's states x(+) up and down; a
 * variable that is multiplied, or changed by amounts that differ, is in its state of chaos here);
 * - it begins with the same constant, however the loop is entered (definition 4.2: an initial value that is
 * known when the program is compiled is the same in all tasks);
 * - at the point where a thread stands, a register or a word of the frame holds the variable, or it plus a
 * constant that all ways to that point agree on: a thread behind `it++` and one before it are in the same
 * iteration.
 *
 * Optimised code counts whatever is cheapest (pointers, or down to 0); what begins with no constant is no
 * variable then. Of callers, only what calls preserve can be read: words of the frame, and the registers
 * that a called function keeps.
 */
#ifndef TRACECTL_ANALYZER_ORDER_LOOP_ORDER_H
#define TRACECTL_ANALYZER_ORDER_LOOP_ORDER_H

#include "analyzer/order/code.h"

struct loop_order;

void loop_order_free(struct loop_order *loops);

/* How the number of finished iterations follows from a value. */
struct loop_reading {
    struct frame_value value;
    int64_t start;    /* what is read in the first iteration */
    int64_t step;     /* what each iteration adds, not 0 */
    const char *name; /* of the variable, as debug information has it, or NULL; lives as long as the image */
};

/* How to read the iteration of `loop` for a thread that stands at `address` of `function`, which has a graph;
 * `innermost`: nothing is called from there, so that all registers hold what they held. -ENOENT: the loop has
 * no order variable that can be read there; -ENOTSUP, -ENOMEM. */
int loop_order_reading(struct order_code *code, struct order_function *function, uint32_t loop,
                       uint64_t address, bool innermost, struct loop_reading *ret_reading);

/* The number of finished iterations that `value`, as it was read, tells. False: it is not one that the loop
 * makes. */
bool loop_order_iterations(const struct loop_reading *reading, int64_t value, uint64_t *ret_iterations);

#endif
