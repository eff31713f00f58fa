/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What recovering in place and salvaging into another store share. */
#ifndef TRACESTORE_RECOVER_H
#define TRACESTORE_RECOVER_H

#include "store/census.h"
#include "store/journal.h"
#include "store/store.h"

/* A segment that becomes a row; all of it borrowed. */
struct recovered_segment {
    int64_t run_id, thread_id;
    uint64_t first_seq, event_count;
    uint64_t first_ns, last_ns; /* 0: no times */
    uint8_t codec;
    const struct census *functions;
    struct section payload;
};

/* Writes the rows of `segments` and `segment_functions`. */
int recover_insert_segment(sqlite3 *db, const struct recovered_segment *segment, struct error *err);

/* Folds the journal of a run into segments and ends the run, in a transaction of its own. Adds to
 * `recovered`. */
int recover_one_run(sqlite3 *db, int64_t run_id, struct trace_recovered *recovered, struct error *err);

#endif
