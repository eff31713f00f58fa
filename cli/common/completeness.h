/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How much of a run's functions was seen, in one line: what show and every analysis of calls prints, in the
 * same words. Analyses of goroutines and locks report their own gaps: those are not seen through
 * functions' probes.
 */
#ifndef TRACECTL_CLI_COMMON_COMPLETENESS_H
#define TRACECTL_CLI_COMMON_COMPLETENESS_H

#include <jansson.h>

#include "store/api/tracestore.h"

struct error;

struct completeness {
    int64_t run_id;
    int64_t functions; /* that were to be seen, -1: not known */
    int64_t blind;     /* of which some calls were not, or may not have been */
    uint64_t since_ns; /* when that began; 0: with the recording */
    int64_t calls;     /* recorded */
    int64_t missed;    /* counted and not recorded; -1: not all of them were counted */
    bool lost;         /* events were lost besides: see `losses` */
};

int completeness_read(struct tracestore *store, int64_t run_id, struct completeness *ret_completeness,
                      struct error *err);

/* "4,102 of 4,303 functions; 201 blind since ..., 97.20 % of all calls recorded"; "" when all were seen. */
void completeness_text(const struct completeness *completeness, char *text, size_t size);

/* A line for each run of which not all was seen, on stdout; with the run's number when there are several. */
void completeness_print(const struct completeness *runs, size_t count);

/* Of all runs: [{"run", "functions", "complete", "blind", "since", "calls", "missed", "percent", "text"}].
 * Null is unknown: `percent`, too, when events were lost besides. Of a run that was seen whole
 * `percent` is 100 and `text` empty. */
json_t *completeness_json(const struct completeness *runs, size_t count);

#endif
