/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What nlr and diff share: the options of filters and loop recognition, and loop summaries as text and JSON.
 */
#ifndef TRACECTL_CLI_ANALYSIS_LOOPS_H
#define TRACECTL_CLI_ANALYSIS_LOOPS_H

#include <argp.h>

#include "analyzer/loops/loop_summary.h"
#include "cli/common/completeness.h"
#include "cli/common/output.h"

struct loops_arguments {
    const char *filter, *filter_file, *custom;
    unsigned max_body;    /* 0: the filter's, else the default */
    unsigned min_repeats; /* 0: the default rule */
    bool with_returns;
};

/* A child for a subcommand's argp; its input is a struct loops_arguments. */
extern const struct argp cli_loops_argp;

/* Runs that are open, and their summary if there is one. */
struct loops_input {
    struct tracestore_run *runs;
    struct loop_source *sources; /* the runs with their stores */
    struct completeness *completeness;
    size_t count;
    struct loop_summary summary;
};

/* Opens the runs named. The input must be closed after a failure, too. */
int cli_runs_open(const char *const *runs, size_t count, struct loops_input *ret_input, struct error *err);
void cli_runs_close(struct loops_input *input);

/* Opens the runs named and summarises them. Returns -EINVAL when it is the filter that is wrong: a usage
 * error. */
int cli_loops_read(const struct loops_arguments *arguments, const char *const *runs, size_t count,
                   struct loops_input *ret_input, struct error *err);
void cli_loops_release(struct loops_input *input);

/* Reports that the filter keeps nothing. Returns -ENODATA. */
int cli_loops_kept_nothing(struct error *err);

/* The error line; EXIT_USAGE for what cli_loops_read calls a usage error. */
int cli_loops_fail(int code, const struct error *err);

/* ["MPI_Init", {"loop": "L0", "count": 16}, {"unknown": true}] */
json_t *cli_loops_entries(const struct loop_summary *summary, const struct nlr_element *elements,
                          size_t count);
/* {"L0": ["MPI_Send", "MPI_Recv"]}, the loops that have a number */
json_t *cli_loops_legend(const struct loop_summary *summary);
/* The run's blind functions, losses of no place, and that it is unfinished, as items of "unknown". */
void cli_loops_json_gaps(const struct run_loops *run, const char *side, json_t *array);
json_t *cli_loops_json_gap(const char *thread, const char *side, const struct loop_gap *gap);

const char *cli_loops_last_call(enum last_call last_call);

/* "L0 ^ 16", "MPI_Init", "?" in a buffer of the caller's; cut to fit. */
void cli_loops_text(const struct loop_summary *summary, const struct nlr_element *element, char *text,
                    size_t size);
/* "L0 = [MPI_Send MPI_Recv]", a line a loop, for the loops that the mask says (NULL: all that have a number).
 */
void cli_loops_print_legend(const struct loop_summary *summary, const bool *wanted);
/* Marks the numbers of the loops in the sequence, and of those inside them. */
void cli_loops_mark(const struct loop_summary *summary, const struct nlr_element *elements, size_t count,
                    bool *wanted);
/* A line for each thing that the run did not see; of functions, for the first ones. */
void cli_loops_print_gaps(const struct run_loops *run, const char *side);

#endif
