/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The walk of the virtual tables of process events over the processes that have the stream and that a query's
 * constraints leave, and over the events of each. */
#ifndef TRACESTORE_PROCESS_SCAN_H
#define TRACESTORE_PROCESS_SCAN_H

#include "store/db/db.h"
#include "store/streams/process_iter.h"

/* The first columns of each of these tables. */
enum { PROCESS_SCAN_RUN, PROCESS_SCAN_PROCESS, PROCESS_SCAN_LABEL, PROCESS_SCAN_COLUMNS };

struct process_scan {
    sqlite3 *db;
    enum process_stream stream;
    struct process_range range;
    sqlite3_stmt *processes; /* NULL: there are no further ones */
    struct process_event_iter *iter;
    int64_t run_id, process_id;
    char *process;              /* its number, P of P.T and P.gN */
    struct process_event event; /* the last one, and its place */
    uint64_t seq;
};

/* xFilter: begins anew with the processes of `stream`. */
int process_scan_start(struct process_scan *scan, enum process_stream stream, sqlite3 *db,
                       const char *index_text, int argc, sqlite3_value **argv, struct error *err);
void process_scan_stop(struct process_scan *scan);

/* 0: at the next process, before its events; 1: there is none. */
int process_scan_next_process(struct process_scan *scan, struct error *err);
/* 0: `event` is the process's next one; 1: there is none. */
int process_scan_next_event(struct process_scan *scan, struct error *err);

/* Gives one of the first columns as a query's result; the label is that of a goroutine or thread of the
 * process. Without a goroutine (0) it is NULL. */
void process_scan_result(const struct process_scan *scan, sqlite3_context *context, int column,
                         uint64_t actor);

/* An integer as a result, NULL for 0. */
static inline void sql_result_known(sqlite3_context *context, uint64_t number)
{
    if (number)
        sqlite3_result_int64(context, (sqlite3_int64)number);
}

#endif
