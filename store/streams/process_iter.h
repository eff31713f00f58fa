/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reading the events of a process segment by segment. The last segment of a process that is being recorded
 * grows between two looks at it: then what is new is read out of the row as it is now. As event_iter.c does,
 * each segment is copied, so that no read transaction stays open.
 */
#ifndef TRACESTORE_PROCESS_ITER_H
#define TRACESTORE_PROCESS_ITER_H

#include "store/db/sqlite.h"
#include "store/streams/process_events.h"

/* Both ends included. */
struct process_range {
    uint64_t first_seq, last_seq;
    uint64_t from_ns, to_ns;
};
#define PROCESS_RANGE_ALL ((struct process_range){.last_seq = UINT64_MAX, .to_ns = INT64_MAX})

/* process_event_iter_open for a part of the events. */
int process_event_iter_open_db(sqlite3 *db, enum process_stream stream, int64_t process_id,
                               const struct process_range *range, struct process_event_iter **ret_iter,
                               struct error *err);

#endif
