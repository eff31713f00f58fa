/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The runs of one store in another one, as the files that copy them share it (merge_*.c).
 *
 * Rows get new ids in the store that they are added to. What runs share (images, functions, call sites) is known there by
 * its content, so that the same function has one row, whatever store its runs came from. The store that is read may be
 * damaged or hostile: each value has the type of its column, each segment is decoded, and each id has a row, or nothing
 * is added.
 */
#ifndef TRACESTORE_MERGE_H
#define TRACESTORE_MERGE_H

#include "store/bytes/id_map.h"
#include "store/db/store.h"
#include "store/segment/census.h"
#include "store/segment/numbering.h"
#include "store/segment/segment_row.h"

/* Rows that others refer to by id. */
enum merge_id {
    MERGE_IMAGE,
    MERGE_FUNCTION,
    MERGE_SITE,
    MERGE_SHARED, /* those before are shared by runs, those behind are not */
    MERGE_USAGE = MERGE_SHARED,
    MERGE_PROCESS,
    MERGE_THREAD,
    MERGE_IDS,
};

/* SQL: the value of the tag that a run of a job has for each of the runs that it was made of (merge_jobs.c). */
#define MERGE_PART_SQL(host, recorder, started_ns) host " || ' ' || " recorder " || ' ' || " started_ns

/* The statements for a table of what runs share, and the types of its columns; NULL until they are needed. */
struct merge_shared {
    sqlite3_stmt *row, *find, *insert;
    char *types;
};

struct merge {
    sqlite3 *from, *to;
    int64_t from_run, to_run;
    struct id_map ids[MERGE_IDS];              /* the row's id in `to`, by its id in `from` */
    struct numbering numberings[NUMBER_KINDS]; /* the same of functions and call sites, for segments */
    struct merge_shared shared[MERGE_SHARED];
    struct segment_inserter segments;
    struct trace_merged sum;
    struct error *err;
};

/* "cannot merge WHAT: it is damaged (salvage it with ...)": -EBADMSG. */
int merge_damaged(struct merge *merge, const char *what);

/* The id in `to` of a row in `from`. An image, function or call site that was not named before is looked for in `to`, or
 * added. -EBADMSG: there is no such row. */
int merge_id_of(struct merge *merge, enum merge_id kind, int64_t id, int64_t *ret_id);

/* What budgets know of binaries. */
int merge_copy_plans(struct merge *merge);

/* The row of run `from_run`, which gives `to_run`, and all rows of it but segments; where its programs use goroutines. */
int merge_copy_run(struct merge *merge);

void merge_release_shared(struct merge *merge);

/* The run's segments of calls and of process events (merge_segments.c). */
int merge_copy_segments(struct merge *merge);

#endif
