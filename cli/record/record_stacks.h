/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where the threads of recorded processes are when their recording ends and they live on. */
#ifndef TRACECTL_CLI_RECORD_RECORD_STACKS_H
#define TRACECTL_CLI_RECORD_RECORD_STACKS_H

#include "cli/record/record_arguments.h"
#include "store/api/tracestore.h"

struct record_stacks;

/* Samples the processes that were named by -p, and their children where those are followed; to be called while
 * they are still recorded. NULL: none is left, or nothing can be known; the reason is reported on standard error. */
struct record_stacks *record_stacks_take(const struct record_arguments *arguments);

/* Keeps them with the run, which has ended. Accepts NULL. */
int record_stacks_keep(const struct record_stacks *stacks, struct tracestore *store, int64_t run_id,
                       struct error *err);

/* Accepts NULL. */
void record_stacks_free(struct record_stacks *stacks);

#endif
