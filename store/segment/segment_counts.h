/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The functions of segments and their numbers of calls, without decoding events: from the packed lists in
 * `segments.functions`. */
#ifndef TRACESTORE_SEGMENT_COUNTS_H
#define TRACESTORE_SEGMENT_COUNTS_H

#include "store/db/db.h"
#include "store/segment/call_list.h"
#include "store/segment/census.h"

enum counts_of { COUNTS_OF_ALL, COUNTS_OF_RUN, COUNTS_OF_THREAD, COUNTS_OF_SEGMENT };

struct segment_counts {
    sqlite3 *db;
    sqlite3_stmt *rows;
    int64_t segment_id; /* that the function given last is in */
    struct call_list_reader list;
};

#define AUTO_SEGMENT_COUNTS __attribute__((cleanup(segment_counts_close))) struct segment_counts

/* Prepares to read the counts of the segments of a kind. */
int segment_counts_open(struct segment_counts *counts, sqlite3 *db, enum counts_of of, struct error *err);
void segment_counts_close(struct segment_counts *counts);

/* Begins with the segments of that run or thread, or that segment, by `of` above. May come again. */
void segment_counts_select(struct segment_counts *counts, int64_t id);
/* Begins anew, with ALL or the same id. */
void segment_counts_rewind(struct segment_counts *counts);

/* 0 with a function of the segment `segment_id`, 1 at the end, <0. Functions come in ascending order, segment
 * by segment, those of ALL in the order of their ids. -EBADMSG: a list is damaged; the next call continues
 * behind it. */
int segment_counts_next(struct segment_counts *counts, struct function_calls *ret_function,
                        struct error *err);

/* Adds what comes until the end to `census`. */
int segment_counts_sum(struct segment_counts *counts, struct census *census, struct error *err);

#endif
