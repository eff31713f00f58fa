/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl stat -p: where the threads of live processes are. */
#ifndef TRACECTL_CLI_LIVE_STAT_LIVE_H
#define TRACECTL_CLI_LIVE_STAT_LIVE_H

#include <argp.h>
#include <jansson.h>

#include "analyzer/order/sample.h"
#include "cli/common/pid_list.h"
#include "collector/stacks/stack_sampler.h"

struct stat_live_options {
    struct pid_list pids;
    bool children;        /* also all processes below them */
    bool system;          /* also goroutines of the runtime's own */
    unsigned samples;     /* how often */
    unsigned interval_ms; /* from one to the next */
};

/* "--pid", "--children", "--samples", "--interval", "--system"; state->input of the parser is a struct
 * stat_live_options *. */
extern const struct argp stat_live_argp;
void stat_live_defaults(struct stat_live_options *options);
void stat_live_options_release(struct stat_live_options *options);

/* Samples the processes. Free both, the set first. */
int stat_live_sample(const struct stat_live_options *options, struct stack_sampler **ret_sampler,
                     struct sample_set **ret_set, struct error *err);

/* What is not known: a line each on standard error; in JSON an array of texts. */
void stat_live_print_unknown(const struct stack_sampler *sampler);
json_t *stat_live_json_unknown(const struct stack_sampler *sampler);

/* {"threads": N, "stopped": N, "longest_stop_us": X, ...} */
json_t *stat_live_json_cost(const struct stack_sampler *sampler);

#endif
