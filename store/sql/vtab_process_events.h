/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The virtual tables that are made of process events. */
#ifndef TRACESTORE_VTAB_PROCESS_EVENTS_H
#define TRACESTORE_VTAB_PROCESS_EVENTS_H

#include "store/db/sqlite.h"

/* vtab_process_events.c */
extern const sqlite3_module vtab_go_events_module, vtab_sync_events_module;
/* vtab_goroutines.c */
extern const sqlite3_module vtab_goroutines_module, vtab_go_blocks_module;

#endif
