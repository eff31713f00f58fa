/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to analyzer/order/: what the goroutines of a recorded run were doing at its end, in the words of
 * Go's runtime. */
#ifndef TRACECTL_ANALYZER_ORDER_RECORDED_STATES_H
#define TRACECTL_ANALYZER_ORDER_RECORDED_STATES_H

#include "analyzer/order/sample.h"
#include "store/api/tracestore.h"

/* All zero is empty. */
struct recorded_states {
    struct recorded_state {
        uint32_t label, state; /* texts of the set: "0.g7", "chan receive" */
    } * items;                 /* by label */
    size_t count, capacity;
};

/* Of those that had not ended. -ENOMEM, or what the store says. To be released in any case. */
int recorded_states_read(struct tracestore *store, int64_t run_id, struct sample_set *set,
                         struct recorded_states *states, struct error *err);
void recorded_states_release(struct recorded_states *states);

/* 0: not known. */
uint32_t recorded_states_find(const struct recorded_states *states, uint32_t label);

#endif
