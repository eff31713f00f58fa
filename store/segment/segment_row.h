/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Writing segments as rows of `segments`, with their packed lists of functions. */
#ifndef TRACESTORE_SEGMENT_ROW_H
#define TRACESTORE_SEGMENT_ROW_H

#include "store/db/db.h"
#include "store/segment/segment.h"

/* All of it borrowed. */
struct segment_row {
    int64_t run_id, thread_id;
    uint64_t first_seq, event_count;
    uint64_t first_ns, last_ns; /* 0: no times */
    uint8_t codec;
    struct section payload;
    struct function_calls *functions; /* as closed_segment has them; they are put in order */
    size_t function_count;
};

/* The prepared statement. Zero-initialised: none. */
struct segment_inserter {
    sqlite3 *db;
    sqlite3_stmt *segment;
};

#define AUTO_SEGMENT_INSERTER __attribute__((cleanup(segment_inserter_close))) struct segment_inserter

int segment_inserter_open(struct segment_inserter *inserter, sqlite3 *db, const char *what,
                          struct error *err);
void segment_inserter_close(struct segment_inserter *inserter);

/* Inside a transaction. */
int segment_insert(struct segment_inserter *inserter, const struct segment_row *row, const char *what,
                   struct error *err);

#endif
