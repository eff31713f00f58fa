/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Manual pages from the same tables that --help prints: troff with the man macros. */
#ifndef TRACECTL_CLI_COMMON_MANUAL_H
#define TRACECTL_CLI_COMMON_MANUAL_H

#include <stdio.h>

#include "cli/common/command.h"

/* tracectl-NAME(1). */
void manual_command(FILE *out, const struct command *command);

/* tracectl(1): the common options, the list of commands, examples, the exit statuses, the environment. */
void manual_overview(FILE *out, const struct argp *argp, const char *examples,
                     const struct command *const *commands, size_t count);

#endif
