/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The walk of the virtual tables of goroutines over the Go programs that a query's constraints leave, and
 * over the events of each. */
#ifndef TRACESTORE_GO_SCAN_H
#define TRACESTORE_GO_SCAN_H

#include <stdbool.h>

#include "store/db/db.h"
#include "store/streams/go_tables.h"

/* The first columns of each of these tables. */
enum { GO_SCAN_RUN, GO_SCAN_PROCESS, GO_SCAN_LABEL, GO_SCAN_GOROUTINE, GO_SCAN_COLUMNS };

#define GO_WAIT_REASONS 256 /* the runtime keeps their numbers in a byte */

struct go_scan {
    sqlite3 *db;
    struct process_range range;
    sqlite3_stmt *programs; /* NULL: there are no further ones */
    struct process_event_iter *iter;
    int64_t run_id, process_id;
    char *process;                  /* its number, P of P.gN */
    char *reasons[GO_WAIT_REASONS]; /* of the process; NULL where there is none of that number */
    struct process_event event;     /* the last one, and its place */
    uint64_t seq;
};

/* xBestIndex: pushes run_id = and process_id = down, and with `sequence` the columns seq and ns, which follow
 * the first ones, by = and ranges. */
int go_scan_best_index(sqlite3_index_info *info, bool sequence);

/* xFilter: begins anew. */
int go_scan_start(struct go_scan *scan, sqlite3 *db, const char *index_text, int argc, sqlite3_value **argv,
                  struct error *err);
void go_scan_stop(struct go_scan *scan);

/* 0: at the next process, before its events; 1: there is none. */
int go_scan_next_process(struct go_scan *scan, struct error *err);
/* 0: `event` is the process's next one; 1: there is none. */
int go_scan_next_event(struct go_scan *scan, struct error *err);

/* Gives one of the first columns as a query's result. */
void go_scan_result(const struct go_scan *scan, sqlite3_context *context, int column, uint64_t goroutine);

/* The name of a wait reason of the process, NULL where it has none. */
static inline const char *go_scan_reason(const struct go_scan *scan, int64_t number)
{
    return number >= 0 && number < GO_WAIT_REASONS ? scan->reasons[number] : NULL;
}

/* An integer as a result, NULL for 0. */
static inline void go_result_known(sqlite3_context *context, uint64_t number)
{
    if (number)
        sqlite3_result_int64(context, (sqlite3_int64)number);
}

/* A text that lives long enough as a result, NULL for NULL. */
static inline void go_result_name(sqlite3_context *context, const char *name)
{
    if (name)
        sqlite3_result_text(context, name, -1, SQLITE_TRANSIENT);
}

extern const sqlite3_module vtab_go_events_module, vtab_goroutines_module, vtab_go_blocks_module;

#endif
