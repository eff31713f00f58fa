/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl diff --functions: calls and times of each function in two runs, the most changed first. */
#ifndef TRACECTL_CLI_DIFF_DIFF_FUNCTIONS_H
#define TRACECTL_CLI_DIFF_DIFF_FUNCTIONS_H

#include "cli/diff/diff_report.h"

/* Opens the runs (`count` names: baselines, then the candidate), and prints text or JSON. *ret_found: whether
 * some function has changed. */
int diff_functions_print(const struct diff_arguments *arguments, const char *const *runs, size_t count,
                         bool *ret_found, struct error *err);

#endif
