/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What rank, diff and report share: the options of a sweep, and the ranking that comes of it. */
#ifndef TRACECTL_CLI_CLUSTER_RANKING_INPUT_H
#define TRACECTL_CLI_CLUSTER_RANKING_INPUT_H

#include <argp.h>

#include "analyzer/ranking/ranking.h"
#include "cli/analysis/loops.h"

enum {
    RANKING_MOST_RUNS = 64, /* and filters */
    RANKING_MOST_BODIES = 16,
    RANKING_MOST_VIEWS = RANKING_MOST_RUNS * RANKING_MOST_BODIES,
};

struct ranking_arguments {
    struct {
        const char *items[RANKING_MOST_RUNS];
        size_t count;
    } baselines, filters;
    const char *filter_file, *custom;
    unsigned max_bodies[RANKING_MOST_BODIES]; /* values of K; none: the default */
    size_t max_body_count;
    struct attribute_kind attributes[16]; /* none: all */
    size_t attribute_count;
    enum linkage_method linkages[LINKAGE_METHODS]; /* none: all, or one when there are many threads */
    size_t linkage_count;
    unsigned min_repeats;
    bool with_returns;
};

/* A child for a subcommand's argp; its input is a struct ranking_arguments. */
extern const struct argp ranking_argp;

struct ranking_input {
    struct loops_input runs; /* without a summary: the normal ones, the faulty one last */
    struct ranking_view *views;
    struct loop_summary *summaries; /* of the views */
    size_t view_count;
    const char **filter_names; /* chosen automatically, when the user named none */
    struct ranking ranking;
};

/* Opens the runs, summarises them with all filters and values of K, and ranks. Fails like cli_loops_read.
 * Release also after a failure. */
int ranking_input_read(const struct ranking_arguments *arguments, const char *normal, const char *faulty,
                       struct ranking_input *ret_input, struct error *err);
void ranking_input_release(struct ranking_input *input);

/* Whether all filters can be tried without making anybody wait. */
bool ranking_is_cheap(const struct loop_summary *summary);

/* Ranks with the view that a summary is, all attributes and one linkage. Release what a success returned. */
int ranking_of_summary(const struct loop_summary *summary, struct ranking *ret_ranking, struct error *err);

/* Whether the runs differ in what a ranking sees: suspects, or threads that only one side has. */
bool ranking_finds(const struct ranking *ranking);

#endif
