/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What recovering in place and salvaging into another store share. */
#ifndef TRACESTORE_RECOVER_H
#define TRACESTORE_RECOVER_H

#include "store/db/store.h"
#include "store/segment/census.h"
#include "store/segment/journal.h"
#include "store/segment/segment_row.h"

/* Writes a segment as a row, with the functions that were counted in it. */
int recover_insert_segment(sqlite3 *db, const struct census *functions, const struct segment_row *segment,
                           struct error *err);

#endif
