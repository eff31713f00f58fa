/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a recording with a budget sees of its target at the moment, function by function. */
#ifndef TRACECTL_COLLECTOR_BUDGET_BUDGET_STATUS_H
#define TRACECTL_COLLECTOR_BUDGET_BUDGET_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;

struct recorder;

enum record_state {
    FUNCTION_RECORDED,  /* every call is recorded */
    FUNCTION_THROTTLED, /* some calls are only counted */
    FUNCTION_EXCLUDED,  /* it has no probe at present: it costs nothing, and its calls are not counted */
};

struct budget_function_status {
    const char *name, *image; /* borrowed from the recorder; image: a path */
    enum record_state state;
    double calls_per_second;   /* of late; of an excluded function, when it was last seen */
    uint64_t recorded, missed; /* calls since the recording began */
};

struct budget_totals {
    double share;                   /* the budget: 0.05 is five percent */
    size_t functions, limited, out; /* that have uprobes; of these, in that state */
    size_t page_excluded;           /* of the excluded ones: for the pages that they are on */
    uint64_t estimated_ns, cpu_ns;  /* CPU time that probes took, and that the target has used with them */
    double worst_second;            /* the largest share that a second took, of the target's own time in it */
};

/* False: there is no budget. */
bool recorder_budget_totals(const struct recorder *recorder, struct budget_totals *ret_totals);

/* All functions that have been called, or are excluded, most calls per second first. The caller frees the
 * list. Without a budget it is empty. -ENOMEM. */
int recorder_budget_functions(const struct recorder *recorder, struct budget_function_status **ret_functions,
                              size_t *ret_count, struct error *err);

/* "traced", "limited", "out" */
const char *record_state_name(enum record_state state);

#endif
