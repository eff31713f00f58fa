/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* `tracectl record --dry-run`: what would be probed, and what each hit would cost. */
#ifndef TRACECTL_CLI_RECORD_RECORD_PREVIEW_H
#define TRACECTL_CLI_RECORD_RECORD_PREVIEW_H

#include "cli/record/record_arguments.h"

/* Plans as a recording would, and prints the plan; needs no privileges for a command. Nothing is attached,
 * and the command does not run. */
int record_preview(const struct record_arguments *arguments, struct error *err);

#endif
