/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Private to analyzer/order/: frames that tail calls took away. A function that jumps to another one leaves
 * no frame, so what is seen on the stack below its caller may not be what the caller called, nor the first of
 * its kind: such frames are not compared. Jumps into other images (through the PLT) are not followed: what is
 * called there does not come back by a jump.
 */
#ifndef TRACECTL_ANALYZER_ORDER_TAIL_CALLS_H
#define TRACECTL_ANALYZER_ORDER_TAIL_CALLS_H

#include "analyzer/order/code.h"

/* Whether the call at `caller` is one that `callee` is entered by, as far as the instruction says: calls
 * through pointers and into other images may enter anything. */
bool tail_calls_none_between(struct order_code *code, const struct sample_place *caller,
                             const struct sample_place *callee);

/* Whether a chain of jumps may lead from the function back to its entry. */
bool tail_calls_may_reenter(struct order_code *code, struct order_function *function);

#endif
