/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* "Did you mean ...?" for misspelt commands and options. */
#ifndef TRACECTL_CLI_COMMON_SUGGESTION_H
#define TRACECTL_CLI_COMMON_SUGGESTION_H

#include <argp.h>
#include <stddef.h>

/* The one of `names` that is nearest to the word: at most two letters missing, added, replaced or swapped,
 * and fewer than half of them. NULL: none is that near. `names` are borrowed. */
const char *suggestion_for(const char *word, const char *const *names, size_t count);

/* Ends the process with a usage error when the command line has an unknown long option that is nearly one of
 * `argp` and its children; else argp reports it. `flags` as for argp_parse, argv[0] begins the message. */
void suggestion_check_options(const struct argp *argp, unsigned flags, int argc, char **argv);

#endif
