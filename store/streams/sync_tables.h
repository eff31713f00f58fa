/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the readers of synchronisation events in store/ share. */
#ifndef TRACESTORE_SYNC_TABLES_H
#define TRACESTORE_SYNC_TABLES_H

#include "store/db/sqlite.h"
#include "store/streams/process_iter.h"
#include "store/streams/sync_events.h"

extern const sqlite3_module vtab_sync_events_module;

#endif
