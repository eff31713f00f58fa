/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the readers of synchronisation events in store/ share. */
#ifndef TRACESTORE_SYNC_TABLES_H
#define TRACESTORE_SYNC_TABLES_H

#include "store/sqlite.h"
#include "store/sync_events.h"

/* Which events are wanted; all bounds included. */
struct sync_range {
    uint64_t first_seq, last_seq;
    uint64_t from_ns, to_ns;
};
#define SYNC_RANGE_ALL ((struct sync_range){.last_seq = UINT64_MAX, .to_ns = INT64_MAX})

int sync_event_iter_open_db(sqlite3 *db, int64_t process_id, const struct sync_range *range,
                            struct sync_event_iter **ret_iter, struct error *err);

extern const sqlite3_module vtab_sync_events_module;

#endif
