/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The slowest calls of a function, as text and JSON. */
#ifndef TRACECTL_CLI_ANALYSIS_SLOW_OUTPUT_H
#define TRACECTL_CLI_ANALYSIS_SLOW_OUTPUT_H

#include "analyzer/times/slow_calls.h"
#include "cli/common/completeness.h"
#include "store/api/tracestore.h"

struct slow_output {
    const struct tracestore_run *run;
    const char *function; /* as the user spelled it */
    const struct slow_calls *calls;
    const struct tracestore_function *functions; /* of the run, by function_id */
    size_t function_count;
    const struct tracestore_thread *threads;
    size_t thread_count;
    struct completeness completeness;
};

/* Fails with -ENOMEM. */
int slow_print_text(const struct slow_output *output);
void slow_print_json(const struct slow_output *output);

#endif
