/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Predicted cascades as text, JSON and a picture. */
#ifndef TRACECTL_CLI_ANALYSIS_CASCADE_OUTPUT_H
#define TRACECTL_CLI_ANALYSIS_CASCADE_OUTPUT_H

#include "analyzer/cascade/cascade.h"
#include "cli/analysis/loops.h"

/* What was found in the runs of the input. First a sentence for each report, then its chain, its evidence and
 * what to make larger to see it; at the end what is not known. */
void cli_cascade_text(const struct cascade_result *result, const struct loops_input *input, const char *sink);

/* docs/cascade.md has the keys. */
void cli_cascade_json(const struct cascade_result *result, const struct loops_input *input, const char *sink);

int cli_cascade_draw(const struct cascade_result *result, const char *sink, const char *path,
                     struct error *err);

#endif
