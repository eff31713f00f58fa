/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where the threads of a run were at its end, for its page. */
#ifndef TRACECTL_CLI_REPORT_REPORT_ORDER_H
#define TRACECTL_CLI_REPORT_REPORT_ORDER_H

#include "analyzer/order/recorded.h"

struct report_order {
    struct recorded_sample *ends;
    struct order_tree *order; /* NULL: no call was open, or there is no disassembler */
};

/* Release it, also after a failure. */
int report_order_read(struct tracestore *store, int64_t run_id, struct report_order *ret_order,
                      struct error *err);
void report_order_release(struct report_order *order);

#endif
