/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/db/guard.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "store/db/db.h"

#define MIB (1 << 20)
#define PROGRESS_OPS 1000 /* of SQLite's machine, between two looks at the time: well under a millisecond */

/* Pragmas that only tell something, when they are given no value. */
static bool pragma_reads(const char *name, const char *value)
{
    static const char *const asking[] = {
        "application_id", "compile_options", "data_version", "database_list", "encoding",
        "freelist_count", "function_list",   "journal_mode", "module_list",   "page_count",
        "page_size",      "schema_version",  "user_version"};
    static const char *const inspecting[] = {
        "foreign_key_check", "foreign_key_list", "index_info", "index_list", "index_xinfo",
        "integrity_check",   "quick_check",      "table_info", "table_list", "table_xinfo"};

    for (size_t i = 0; i < ARRAY_SIZE(asking); i++)
        if (!value && !sqlite3_stricmp(name, asking[i]))
            return true;
    for (size_t i = 0; i < ARRAY_SIZE(inspecting); i++)
        if (!sqlite3_stricmp(name, inspecting[i]))
            return true;
    return false;
}

/* Whether the name is one of "|NAME|NAME|", in any case. */
static bool is_listed(const char *names, const char *name)
{
    const size_t length = strlen(name);

    for (const char *at = names; (at = strchr(at, '|')) && at[1]; at++)
        if (!sqlite3_strnicmp(at + 1, name, (int)length) && at[1 + length] == '|')
            return true;
    return false;
}

/* Asked while a statement is prepared, those that virtual tables run for it included. */
static int authorize(void *context, int action, const char *first, const char *second, const char *database,
                     const char *trigger)
{
    struct statement_guard *guard = context;
    bool good;

    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
        good = true;
        break;
    case SQLITE_FUNCTION:
        good = !is_listed(guard->functions, second);
        break;
    case SQLITE_PRAGMA:
        good = pragma_reads(first, second);
        break;
    case SQLITE_UPDATE: /* how SQLite asks for a virtual table that is declared; nothing is written */
        good = !strcmp(first, "sqlite_master") || !strcmp(first, "sqlite_temp_master");
        break;
    case SQLITE_TRANSACTION: /* of a virtual table that reads in one snapshot */
        good = !guard->preparing;
        break;
    default:
        good = false;
    }
    guard->refused |= !good;
    return good ? SQLITE_OK : SQLITE_DENY;
}

static int end_early(void *context)
{
    struct statement_guard *guard = context;

    if (guard->interrupted && *guard->interrupted)
        return 1;
    if (guard->limit_ns && clock_ns(CLOCK_MONOTONIC) > guard->until_ns)
        guard->timed_out = true;
    return guard->timed_out;
}

/* A run of a thousand OR is no attack, a megabyte of SQL is. */
static void limit_sizes(sqlite3 *db)
{
    static const struct {
        int what, most;
    } limits[] = {
        {SQLITE_LIMIT_LENGTH, 256 * MIB}, /* of a value or a row; a row of the journal is one */
        {SQLITE_LIMIT_SQL_LENGTH, MIB},
        {SQLITE_LIMIT_EXPR_DEPTH, 1000},
        {SQLITE_LIMIT_COMPOUND_SELECT, 500},
        {SQLITE_LIMIT_VDBE_OP, 4 * MIB},
        {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000},
        {SQLITE_LIMIT_TRIGGER_DEPTH, 1},
        {SQLITE_LIMIT_ATTACHED, 0},
        {SQLITE_LIMIT_WORKER_THREADS, 0},
    };

    for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
        sqlite3_limit(db, limits[i].what, limits[i].most);
}

int guard_statements(sqlite3 *db, struct statement_guard *guard)
{
    AUTO_STATEMENT *row = NULL;

    /* SQLite marks its functions that have effects or give away what no schema may see: direct only. */
    if (sqlite3_prepare_v2(
            db,
            "SELECT '|load_extension|fts3_tokenizer|' || ifnull(group_concat(name, '|'), '') || '|'"
            " FROM pragma_function_list WHERE flags & 0x80000",
            -1, &row, NULL) == SQLITE_OK &&
        sqlite3_step(row) == SQLITE_ROW)
        guard->functions = db_text(row, 0);
    if (!guard->functions || !*guard->functions)
        return -ENOMEM;
    sqlite3_hard_heap_limit64(512 * (sqlite3_int64)MIB);
    limit_sizes(db);
    statement_guard_begin(guard);
    sqlite3_progress_handler(db, PROGRESS_OPS, end_early, guard);
    sqlite3_set_authorizer(db, authorize, guard);
    return 0;
}

void statement_guard_release(struct statement_guard *guard)
{
    free(take_pointer(guard->functions));
}

void statement_guard_begin(struct statement_guard *guard)
{
    guard->refused = guard->timed_out = false;
    guard->until_ns = clock_ns(CLOCK_MONOTONIC) + guard->limit_ns;
}
