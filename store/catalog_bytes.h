/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a run takes in the store besides its events. */
#ifndef TRACESTORE_CATALOG_BYTES_H
#define TRACESTORE_CATALOG_BYTES_H

#include "store/db/db.h"
#include "store/segment/census.h"

struct catalog_bytes {
    uint64_t rows;    /* of tables, the lists of functions in `segments` included, but not the events */
    uint64_t indexes; /* of rows of tables, and of the names of functions */
};

/*
 * About how many bytes of the store the rows that a run needs and their entries in indexes take: the lengths
 * of their values with a few bytes for each cell, without pages' own headers, inner pages and free space.
 * `functions` are those that the run's events name; they and their images count in full, though other runs
 * may share them. Of the index of trigrams the run has the share that its functions have among all. Of call
 * sites those in its functions and in unknown ones count, when it keeps sites: which of them it has come by
 * only its segments contain.
 */
int catalog_bytes_count(sqlite3 *db, int64_t run_id, const struct census *functions,
                        struct catalog_bytes *ret_bytes, struct error *err);

#endif
