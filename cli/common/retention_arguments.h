/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a store is to keep: the options that `tracectl gc` and `tracectl record` spell alike. */
#ifndef TRACECTL_CLI_COMMON_RETENTION_ARGUMENTS_H
#define TRACECTL_CLI_COMMON_RETENTION_ARGUMENTS_H

#include <argp.h>

#include "store/api/tracestore.h"

/* A size such as 500M (units K, M, G, T), in bytes, greater than 0. A usage error ends the program. */
uint64_t cli_parse_bytes(const char *text, struct argp_state *state);

/* Parses into a struct trace_retention: a child argp, whose input the parent sets. */
extern const struct argp retention_argp;

#endif
