/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl top RUN [FUNCTION]: the functions of a run by calls or times, and the durations of one of them. */
#ifndef TRACECTL_CLI_ANALYSIS_TOP_RUN_H
#define TRACECTL_CLI_ANALYSIS_TOP_RUN_H

#include <stdbool.h>

#include "analyzer/times/function_times.h"

struct error;

struct top_run_options {
    const char *run;
    const char *function; /* a name as the image spells it, or demangled; NULL: all */
    enum time_order sort;
    unsigned long limit; /* 0: none */
};

/* "calls", "total", "self", "p99" or "max". */
bool top_run_parse_sort(const char *text, enum time_order *ret_sort);

/* Prints the table, or with --json the document. */
int top_run(const struct top_run_options *options, struct error *err);

#endif
