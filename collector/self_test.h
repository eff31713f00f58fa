/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Tries on the running process itself what recording needs, and measures what a probe costs here. */
#ifndef TRACECTL_COLLECTOR_SELF_TEST_H
#define TRACECTL_COLLECTOR_SELF_TEST_H

#include <stdbool.h>

#include "base/error.h"

enum self_test_cost {
    COST_CALL_EMULATED,       /* a call whose first instruction the kernel emulates (push) */
    COST_CALL_SINGLE_STEPPED, /* a call whose first instruction it must single-step (mov) */
    COST_RETURN,              /* what a return probe adds to an emulated call */
    SELF_TEST_COSTS,
};

struct self_test {
    bool loads;                      /* BPF programs load and the tracepoints attach */
    bool probes;                     /* a probe on this process delivers each of its hits */
    bool sessions;                   /* returns can be probed (kernel 6.13) */
    struct error why;                /* of the first thing that failed */
    double cost_ns[SELF_TEST_COSTS]; /* CPU time of one hit, probe and record; 0: not measured */
};

/* Takes a tenth of a second. Never fails: what does not work is the answer. */
void self_test_run(struct self_test *ret_result);

/* "call_emulated", ... */
const char *self_test_cost_name(enum self_test_cost cost);

#endif
