/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The stacks of a sample as they are: as text, equal ones once; as JSON, thread by thread. */
#ifndef TRACECTL_CLI_LIVE_STAT_STACKS_H
#define TRACECTL_CLI_LIVE_STAT_STACKS_H

#include <jansson.h>
#include <stdio.h>

#include "analyzer/order/sample.h"

/* Those that most threads have first. -ENOMEM. */
int stat_stacks_text(FILE *out, const struct sample_set *set);

/* [{"thread": "0.1", "pid": N, ..., "frames": [{"function": "main", ...}]}], frames innermost first. */
json_t *stat_stacks_json(const struct sample_set *set);

#endif
