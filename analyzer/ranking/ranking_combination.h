/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One combination of filter, K and attributes, with all linkages: a part of ranking.c. */
#ifndef TRACECTL_ANALYZER_RANKING_RANKING_COMBINATION_H
#define TRACECTL_ANALYZER_RANKING_RANKING_COMBINATION_H

#include "analyzer/cluster/similarity.h"
#include "analyzer/ranking/ranking_objects.h"

struct linkage_result {
    double b_score;
    uint32_t *suspects; /* most changed first */
    size_t suspect_count;
};

/* What the combination says of the objects. Subjects are runs that are compared with the normal ones: the
 * faulty run first, and behind it, if there are several, each normal run against the others. */
struct combination {
    double *votes; /* of subject s for object i: votes[s * count + i] */
    double *own;   /* the same: how much its own calls changed, whoever else's did */
    double *confidence;
    size_t subjects;
    struct linkage_result *linkages; /* of the faulty run, in the order of the sweep's linkages */
    size_t linkage_count;
};

/* How much the objects resemble each other in the normal runs, by what they call and not how often: the mean
 * of the JSMs. Release also after a failure. Fails with -ENOMEM. */
int peers_compute(const struct ranking_view *view, const struct object_map *objects,
                  struct similarity *ret_peers);

/* `peers` as above. Memory: a matrix of the objects for each run and two more. Fails with -ENOMEM. Release
 * also after a failure. */
int combination_compute(const struct ranking_view *view, struct attribute_kind kind,
                        const enum linkage_method *linkages, size_t linkage_count,
                        const struct object_map *objects, const struct similarity *peers,
                        struct combination *ret_combination);
void combination_release(struct combination *combination);

#endif
