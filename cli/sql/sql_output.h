/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What query and sql share: the store with all tables, statements that only read, and their rows on stdout.
 */
#ifndef TRACECTL_CLI_SQL_SQL_OUTPUT_H
#define TRACECTL_CLI_SQL_SQL_OUTPUT_H

#include <argp.h>

#include "store/api/tracestore.h"
#include "store/db/guard.h"
#include "store/db/sqlite.h"

struct error;

enum sql_mode { SQL_TABLE, SQL_CSV, SQL_JSON, SQL_LINE };

/* The time limit of a statement without --timeout: ten minutes. */
#define SQL_TIMEOUT_NS (UINT64_C(600) * 1000000000)
#define SQL_TIMEOUT_OPTION(key) \
    { \
        "timeout", key, "TIME", 0, "End a statement that takes longer: 30s, 5m, 1h or none (default 10m)", 0 \
    }

/* The argument of --timeout in nanoseconds, 0 for none; a usage error when it is no time. */
uint64_t sql_parse_timeout(const char *text, const struct argp_state *state);

/* Opens the store of -d for reading, with the tables of the analyzer beside those of the store, and with the
 * guard, which outlives it (guard.h). Fill in the guard's limit before. */
int sql_open(struct tracestore **ret_store, struct statement_guard *guard, struct error *err);

/* Prepares the first statement of `sql`, NULL when there is only space and comment; *ret_rest is what stands
 * behind it. Refuses (-EPERM) what does more than to read. The statement's time begins. */
int sql_prepare(sqlite3 *db, struct statement_guard *guard, const char *sql, sqlite3_stmt **ret_statement,
                const char **ret_rest, struct error *err);

/* Steps through all rows and prints them. Returns SQLITE_DONE, or why it ended before: SQLITE_ROW when the
 * output is broken. */
int sql_print(sqlite3_stmt *statement, enum sql_mode mode);

/* The error line for SQLite's last error, or for the limit that was reached. Returns -EINVAL. */
int sql_fail(sqlite3 *db, const struct statement_guard *guard, struct error *err);

#endif
