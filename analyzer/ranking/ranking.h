/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ranking: which threads a fault changed most, over many combinations of filter, attributes, K and linkage.
 *
 * DiffTrace (CLUSTER'19), sections 2.6 and 3.3.3: for each combination the Jaccard similarity matrices of the
 * two runs, their difference JSM_D, the B-score of the two clusterings, and the suspects: the rows that
 * changed most and stand apart in a clustering of JSM_D. Beyond the paper: several normal runs, between which
 * what varies is no suspicion, and a consensus, in which every combination votes with its confidence.
 * docs/analysis.md says exactly what is computed.
 *
 * Objects are the threads that all runs have, and the processes that they belong to. Threads that are on one
 * side only are listed, and so are those of which events are missing: these are not ranked.
 */
#ifndef TRACECTL_ANALYZER_RANKING_RANKING_H
#define TRACECTL_ANALYZER_RANKING_RANKING_H

#include "analyzer/cluster/attributes.h"
#include "analyzer/cluster/linkage.h"
#include "analyzer/loops/loop_summary.h"

/* The runs as one filter and one K show them. All views are of the same runs, the faulty one last. */
struct ranking_view {
    const char *filter; /* as the user spelt it */
    uint32_t max_body;  /* K */
    const struct loop_summary *summary;
};

/* Every view is combined with all kinds of attributes and all linkages. */
struct ranking_sweep {
    const struct ranking_view *views;
    size_t view_count;
    const struct attribute_kind *attributes;
    size_t attribute_count;
    const enum linkage_method *linkages;
    size_t linkage_count;
    unsigned workers; /* threads that compute; 0: one */
};

/* One combination. The suspects are objects of ranking.threads and ranking.processes, most changed first. */
struct ranking_row {
    size_t view;
    struct attribute_kind attributes;
    enum linkage_method linkage;
    double b_score; /* of the threads' clusterings, normal and faulty: 0 to 1, low when the fault changed who
                       resembles whom */
    double confidence; /* with which it votes: 0 to 1 */
    uint32_t *threads, *processes;
    size_t thread_count, process_count;
};

struct ranked {
    uint32_t object;
    double score;  /* 0 to 1.2: what is above the variations, of the own change a tenth; a tenth for a hang */
    double change; /* the combinations' votes: how much it stands out */
    double own;    /* how much its own calls changed, whoever else's did */
    /* Twice what it and its peers change between normal runs; 0 when there is one such run, for
     * nobody knows then. */
    double variation, own_variation;
    bool hangs; /* it never came back from its last call, as it did in all normal runs */
};

struct ranking_objects {
    char **labels;
    size_t count;
    struct ranked *consensus; /* all of them, highest score first, then in the order of the labels */
};

enum unranked_why {
    UNRANKED_ONLY_NORMAL, /* the faulty run does not have it */
    UNRANKED_ONLY_FAULTY, /* no normal run has it */
    UNRANKED_VARIES,      /* only some of the normal runs have it */
    UNRANKED_UNKNOWN,     /* events of it are missing in one of the runs */
    UNRANKED_NO_RANK,     /* what launched the MPI program: its process has no rank, others have */
};

struct unranked {
    const char *label; /* borrowed from the first view's summary */
    enum unranked_why why;
};

struct ranking {
    struct ranking_objects threads, processes;
    struct ranking_row *rows; /* lowest B-score first */
    size_t row_count;
    struct unranked *unranked; /* in the order of the labels */
    size_t unranked_count, unranked_capacity;
};

/* The views' summaries must outlive the result. Time grows with the square of the number of threads, and with
 * the combinations. Fails with -ENOMEM, -EINVAL (fewer than two runs, or nothing to sweep). Release what a
 * success returned. */
int rank_runs(const struct ranking_sweep *sweep, struct ranking *ret_ranking);
void ranking_release(struct ranking *ranking);

/* How many of the consensus are suspects worth a word: those with a tenth of the highest score or more. */
size_t ranking_suspects(const struct ranking_objects *objects);

#endif
