/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The walk of the virtual tables over the threads that a query's constraints leave, and over the events of
 * each.
 */
#ifndef TRACESTORE_VTAB_SCAN_H
#define TRACESTORE_VTAB_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "store/segment/event_iter.h"
#include "store/sql/vtab_constraints.h"
#include "store/sql/vtab_table.h"

/* A walk over threads: by run, then by label; and over the events of the one it has come to. */
struct vtab_scan {
    sqlite3 *db;
    struct vtab_constraints constraints;
    sqlite3_stmt *threads;
    int64_t run_id, thread_id;
    enum trace_returns returns;
    struct event_iter *iter;

    /* The calls open around the present place, outermost first; kept by vtab_scan_follow. */
    struct open_call *open;
    size_t depth, capacity;
    struct open_call ended; /* the one that vtab_scan_follow() has returned, if it was not in `open` */
    uint64_t next_seq;      /* that follows without a gap; UINT64_MAX before the first event */
};

/* Begins anew, with the arguments of xFilter. */
int vtab_scan_start(struct vtab_scan *scan, sqlite3 *db, const char *index_text, int argc,
                    sqlite3_value **argv, struct error *err);
void vtab_scan_stop(struct vtab_scan *scan);

/* 0: at a thread, whose events are yet to be opened; 1: there is no further one; <0: failure. */
int vtab_scan_next_thread(struct vtab_scan *scan, struct error *err);
int vtab_scan_open_events(struct vtab_scan *scan, const struct event_range *range, struct error *err);

/* After each event: keeps `open` and returns the call that a return ended, NULL after other events. Every
 * pointer is valid until the next event. NULL with *ret_result < 0: out of memory. */
const struct open_call *vtab_scan_follow(struct vtab_scan *scan, const struct event *event, int *ret_result);

extern const sqlite3_module vtab_events_module, vtab_calls_module, vtab_call_edges_module,
    vtab_journal_functions_module, vtab_names_module, vtab_segment_functions_module,
    vtab_function_calls_module;

#endif
