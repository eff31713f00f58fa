/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which threads of several runs are the same one, and which processes they make up: a part of ranking.c. */
#ifndef TRACECTL_ANALYZER_RANKING_RANKING_OBJECTS_H
#define TRACECTL_ANALYZER_RANKING_RANKING_OBJECTS_H

#include "analyzer/ranking/ranking.h"

/* Objects that all runs have. Object i is made of the members first[i] to first[i + 1] - 1, and member m is
 * in run r the thread with the index threads[r * members + m]. */
struct object_map {
    char **labels;
    size_t count;
    size_t *first;
    const size_t *threads; /* borrowed by the map of the processes from that of the threads */
    size_t members;
};

struct object_maps {
    struct object_map threads, processes;
};

/* Matches the threads of all runs by their labels; those that cannot be ranked go to `ranking`. Fails with
 * -ENOMEM. Release also after a failure. */
int object_maps_make(const struct ranking_view *views, size_t view_count, struct ranking *ranking,
                     struct object_maps *ret_maps);
void object_maps_release(struct object_maps *maps);

#endif
