/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the virtual tables have in common: constraints that are pushed down, and the walk over the threads
 * that they leave and over the events of each.
 *
 * xBestIndex writes what it pushes down into idxStr, one word a constraint in the order of argv, so that
 * EXPLAIN QUERY PLAN shows it ("run_id=? seq>=?") and xFilter reads it back. SQLite checks every constraint
 * again on each row, so a table may always return more than was asked for.
 */
#ifndef TRACESTORE_VTAB_SCAN_H
#define TRACESTORE_VTAB_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "store/event_iter.h"
#include "store/vtab_table.h"

/* What a column's constraints restrict. */
enum vtab_term { TERM_RUN, TERM_THREAD, TERM_SEQ, TERM_NS, TERM_FUNCTION, TERM_KIND, TERM_STATE, TERM_COUNT };

/* The columns of a table whose constraints are pushed down, ended by one without a name. */
struct vtab_column {
    const char *name;
    int column;
    enum vtab_term term;
};

enum call_state { STATE_RETURNED = 1, STATE_OPEN = 2, STATE_UNKNOWN = 4, STATE_ANY = 7 };
extern const char *const vtab_kind_names[3]; /* by enum event_kind */

struct vtab_constraints {
    bool nothing; /* no row can match */
    bool has_run, has_thread, has_function, has_kind, has_ns;
    int64_t run_id, thread_id;
    uint64_t first_seq, last_seq; /* both included */
    uint64_t from_ns, to_ns;      /* both included */
    uint32_t function, kind;
    unsigned states; /* of enum call_state */
};

/* Fills idxStr, estimatedCost, estimatedRows and each constraint's argvIndex. */
int vtab_best_index(sqlite3_index_info *info, const struct vtab_column *columns);
/* Whether constraint `i` stands for `column IN (...)`: SQLite would ask once for each value. */
bool vtab_is_list(sqlite3_index_info *info, int i);
/* Whether the query looks at a column, one of the first 63. */
bool vtab_column_used(const sqlite3_index_info *info, int column);
/* Reads what vtab_best_index wrote, with the values. */
void vtab_read_constraints(const char *index_text, int argc, sqlite3_value **argv,
                           struct vtab_constraints *ret_constraints);

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
    uint64_t next_seq; /* that follows without a gap; UINT64_MAX before the first event */
};

int vtab_scan_start(struct vtab_scan *scan, sqlite3 *db, const struct vtab_constraints *constraints,
                    struct error *err);
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
