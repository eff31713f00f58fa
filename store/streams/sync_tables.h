/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the readers of synchronisation events in store/ share. */
#ifndef TRACESTORE_SYNC_TABLES_H
#define TRACESTORE_SYNC_TABLES_H

#include "store/db/sqlite.h"
#include "store/streams/process_iter.h"
#include "store/streams/sync_events.h"

/* sync_event_iter_open for a part of the events. */
int sync_event_iter_open_db(sqlite3 *db, int64_t process_id, const struct process_range *range,
                            struct sync_event_iter **ret_iter, struct error *err);

extern const sqlite3_module vtab_sync_events_module;

#endif
