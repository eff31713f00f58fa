/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The section of a report on the goroutines of a run's Go programs: verdict, tree, timeline. */
#ifndef TRACECTL_CLI_REPORT_REPORT_GOROUTINES_H
#define TRACECTL_CLI_REPORT_REPORT_GOROUTINES_H

#include <stdbool.h>
#include <stdio.h>

#include "store/api/tracestore.h"

struct error;

struct report_goroutines {
    struct tracestore *store;
    int64_t run_id;
};

/* Whether the run has recorded goroutines; a negative errno: that could not be read. */
int report_has_goroutines(const struct report_goroutines *report, struct error *err);

/* The write_goroutines of a struct html_report; `context` is a struct report_goroutines. */
int report_write_goroutines(void *context, FILE *out, struct error *err);

#endif
