/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl diff --functions: calls and times of each function in two runs, the most changed first. */
#ifndef TRACECTL_CLI_DIFF_DIFF_FUNCTIONS_H
#define TRACECTL_CLI_DIFF_DIFF_FUNCTIONS_H

#include "analyzer/times/function_changes.h"
#include "cli/diff/diff_report.h"

/* Opens the runs (`count` names: baselines, then the candidate), and prints text or JSON. *ret_found: whether
 * some function has changed. */
int diff_functions_print(const struct diff_arguments *arguments, const char *const *runs, size_t count,
                         bool *ret_found, struct error *err);

/* The changed functions that lead a report of runs with times, in their order, at most 12, and an empty line; nothing
 * without times or changes. `runs`: the baseline and the candidate as the user named them. Fails with -ENOMEM. */
int diff_functions_lead(const struct function_changes *changes, const char *const *runs);

/* [{"function", "image", "change", "normal", "faulty"}] of the first `count`; NULL for times that are not known. */
json_t *diff_functions_json(const struct function_changes *changes, size_t count);

#endif
