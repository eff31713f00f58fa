/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/report/report_order.h"

#include <errno.h>

int report_order_read(struct tracestore *store, int64_t run_id, struct report_order *ret_order,
                      struct error *err)
{
    int r = recorded_sample_new(store, run_id, 0, &ret_order->ends, err);

    if (r < 0 || !ret_order->ends->set->thread_count)
        return r;
    r = order_tree_new(ret_order->ends->set, &ret_order->ends->source, false, &ret_order->order, err);
    return r == -ENOTSUP ? 0 : r;
}

void report_order_release(struct report_order *order)
{
    order_tree_free(order->order);
    recorded_sample_free(order->ends);
}
