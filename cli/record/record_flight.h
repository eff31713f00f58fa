/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* record --flight: messages about the runs that are stored from the window, at once and at the end.
 */
#ifndef TRACECTL_CLI_RECORD_RECORD_FLIGHT_H
#define TRACECTL_CLI_RECORD_RECORD_FLIGHT_H

#include <jansson.h>

#include "cli/record/record_arguments.h"

/* The runs that were made, and failures, in their order. */
struct flight_log {
    struct flight_report *reports;
    size_t count, capacity;
};

/* The options' callback; its context is the log. Reports each event on standard error. */
void flight_log_add(void *log, const struct flight_report *report);
void flight_log_release(struct flight_log *log);

/* {"window_seconds", "fired", "dropped_events", "cut", "commits": [{"run", "name", "trigger", "from", "to",
 * "seconds", "error"}]} */
json_t *flight_log_json(const struct flight_log *log, const struct flight_options *options,
                        const struct flight_counts *counts, const struct trace_writer_window *window);

/* The rest of the report: that there was no run, or that the window was shorter. */
void flight_log_print_end(const struct flight_log *log, const struct trace_writer_window *window);

#endif
