/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What statements of users can do on a connection to a store (query, sql, a service): they may be hostile, or
 * just too large.
 */
#ifndef TRACESTORE_GUARD_H
#define TRACESTORE_GUARD_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "store/db/sqlite.h"

/* The statements of users. Zeroed but for what the user of guard_statements sets. */
struct statement_guard {
    const volatile sig_atomic_t *interrupted; /* not 0: the running statement ends; NULL: no such thing */
    uint64_t limit_ns;                        /* of one statement; 0: no limit */
    uint64_t until_ns;                        /* of this one: statement_guard_begin */
    bool preparing;  /* a user's own text; set and cleared by who calls sqlite3_prepare_v2 */
    bool refused;    /* the last prepared statement asked for something else than to read */
    bool timed_out;  /* the last one took longer than it may */
    char *functions; /* "|NAME|NAME|": not for users */
};

/*
 * From now on statements of the connection only read (SQLite's authorizer): SELECT with all that belongs to
 * it, and pragmas that tell something. Their length, depth and size, the memory of all SQLite in this process
 * and the time that each takes have limits. `guard` lives as long as the connection; release it afterwards.
 * -ENOMEM.
 */
int guard_statements(sqlite3 *db, struct statement_guard *guard);
void statement_guard_release(struct statement_guard *guard);

/* Before a statement is prepared, and again before it runs: its time begins. */
void statement_guard_begin(struct statement_guard *guard);

#endif
