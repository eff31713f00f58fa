/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The threads that a report's pictures show: those that all its runs have, with their attributes. Threads
 * with the same attributes in every run are a group, and share a row.
 */
#ifndef TRACECTL_ANALYZER_REPORT_REPORT_OBJECTS_H
#define TRACECTL_ANALYZER_REPORT_REPORT_OBJECTS_H

#include "analyzer/cluster/similarity.h"
#include "analyzer/report/html_report.h"

struct report_objects {
    size_t run_count, count; /* count: threads, in the order of their labels */
    const char **names;      /* borrowed from the first run of the summary */
    bool *suspect;
    size_t *importance; /* 0 for the first of the consensus, and so on; without a ranking the own number */

    size_t group_count;  /* in the order of their first threads */
    uint32_t *group_of;  /* by thread */
    uint32_t *threads;   /* group after group, ascending in each */
    size_t *first;       /* group i has threads[first[i]] to before threads[first[i + 1]] */
    char **group_names;  /* see folded_names.h */
    bool *group_suspect; /* one of its threads is */

    struct attribute_table table;
    struct attribute_set *sets;      /* of group g in run r: sets[r * group_count + g] */
    struct similarity *similarities; /* by run: of the groups */
};

/* Fails with -ENOMEM or -EOVERFLOW. Release also after a failure. */
int report_objects_make(const struct html_report *report, struct report_objects *ret_objects);
void report_objects_release(struct report_objects *objects);

/* The groups to show when no more than `most` have room, the most important ones, in their order. In memory
 * from malloc; NULL: none left. */
size_t *report_objects_choose(const struct report_objects *objects, size_t most, size_t *ret_count);

#endif
