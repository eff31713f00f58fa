/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a probe costs on this host: CPU time of one hit, by the form of the probed instruction, of the
 * recorder's programs and of an empty one. The forms are emulated by the kernel (push, nop, jmp, jcc, call),
 * replaced by a call (the five-byte nop, since 6.18) or single-stepped (mov, sub, ret).
 */
#ifndef TRACECTL_COLLECTOR_COST_COSTS_H
#define TRACECTL_COLLECTOR_COST_COSTS_H

#include <stdbool.h>

#include "base/error.h"

enum probe_cost {
    COST_CALL_EMULATED, /* at a push */
    COST_CALL_NOP,
    COST_CALL_JUMP,
    COST_CALL_BRANCH,
    COST_CALL_CALL,
    COST_CALL_NOP5,
    COST_CALL_SINGLE_STEPPED, /* at a mov */
    COST_CALL_SUB,
    COST_CALL_RET,
    COST_CALL_INFERRED,   /* at a push, with what inferring its return takes */
    COST_CALL_AND_RETURN, /* at a push, both */
    COST_RETURN,          /* what a return probe adds there */
    PROBE_COSTS,
};

struct probe_costs {
    bool loads;    /* the recorder's programs load and its tracepoints attach */
    bool delivers; /* each of its hits has arrived: without that no cost is given */
    bool sessions; /* returns can be probed; else their costs are 0 */
    double recorded_ns[PROBE_COSTS];
    double empty_ns[PROBE_COSTS];
    struct error why; /* of what failed first */
};

/* Takes half a second, in a child process. Never fails: what does not work is the answer. */
void probe_costs_measure(struct probe_costs *ret_costs);

/* "call_emulated", ... */
const char *probe_cost_name(enum probe_cost cost);

#endif
