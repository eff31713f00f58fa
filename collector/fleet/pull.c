/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A run out of the fleet: its rows become a store of its own, whose run is then added to another one as a merge does it,
 * which takes nothing of what the server sends for granted.
 */
#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "collector/fleet/fleet_tables.h"
#include "store/api/tracestore.h"
#include "store/db/column_types.h"

static const char what[] = "cannot pull the run";

DEFINE_CLEANUP(cleanup_store, struct tracestore *, tracestore_free)
DEFINE_CLEANUP(cleanup_scratch, char *, fleet_scratch_remove)

struct pull {
    struct fleet *fleet;
    sqlite3 *db;
    long long number; /* in the fleet */
    struct error *err;
};

static int pull_rows(const struct pull *pull, const char *select, const char *insert, const char *types)
{
    AUTO_STATEMENT *statement = NULL;
    AUTO_FREE char *copy = NULL;
    int code = db_prepare(pull->db, insert, what, &statement, pull->err);

    if (code)
        return code;
    if (asprintf(&copy, "COPY (%s) TO STDOUT (FORMAT binary)", select) < 0) {
        copy = NULL;
        return error_no_memory(pull->err);
    }
    return fleet_copy_out(pull->fleet, copy, pull->db, statement, types, pull->err);
}

/* "INSERT INTO table ([run_id, ]columns) VALUES ([1, ]?1, ...)" */
static void insert_sql(const struct fleet_table *table, char *sql, size_t size)
{
    int column = 1;
    size_t length =
        (size_t)snprintf(sql, size, "INSERT INTO main.%s (%s%s) VALUES (%s?1", table->name,
                         table->of_run ? "run_id, " : "", table->columns, table->of_run ? "1, " : "");

    for (const char *c = table->columns; *c; c++)
        if (*c == ',')
            length += (size_t)snprintf(sql + length, size - length, ", ?%d", ++column);
    snprintf(sql + length, size - length, ")");
}

static int pull_table(const struct pull *pull, const struct fleet_table *table)
{
    AUTO_FREE char *types = column_types_of(pull->db, table->name, table->columns);
    char select[512], insert[640];

    if (!types)
        return error_no_memory(pull->err);
    snprintf(select, sizeof(select), "SELECT %s FROM tracectl.%s WHERE run_id = %lld", table->columns,
             table->name, pull->number);
    insert_sql(table, insert, sizeof(insert));
    return pull_rows(pull, select, insert, types);
}

/* The run's row, and what runs share under the numbers that the run has for it. */
static int pull_shared(const struct pull *pull)
{
    char select[512];
    int code;

    snprintf(
        select, sizeof(select),
        "SELECT name, command, host, kernel, started_ns, ended_ns, exit_status, options, tool_version, recorder"
        " FROM tracectl.runs WHERE run_id = %lld",
        pull->number);
    code = pull_rows(
        pull, select,
        "INSERT INTO main.runs (run_id, name, command, host, kernel, started_ns, ended_ns, exit_status, options,"
        " tool_version, recorder) VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        "ttttnNIttt");
    snprintf(
        select, sizeof(select),
        "SELECT local_id, path, build_id, kind FROM tracectl.run_images JOIN tracectl.images USING (image_id)"
        " WHERE run_id = %lld",
        pull->number);
    if (!code)
        code = pull_rows(pull, select,
                         "INSERT INTO main.images (image_id, path, build_id, kind) VALUES (?1, ?2, ?3, ?4)",
                         "ittt");
    snprintf(
        select, sizeof(select),
        "SELECT r.local_id, i.local_id, name, demangled, address, size, file, line, aliases"
        " FROM tracectl.run_functions r JOIN tracectl.functions f USING (function_id) JOIN tracectl.run_images i"
        " ON i.run_id = r.run_id AND i.image_id = f.image_id WHERE r.run_id = %lld",
        pull->number);
    return code
               ? code
               : pull_rows(
                     pull, select,
                     "INSERT INTO main.functions (function_id, image_id, name, demangled, address, size, file, line,"
                     " aliases, name_hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, name_hash(?3))",
                     "iitTiiTIT");
}

/* All of one moment: the run may be deleted meanwhile. */
static int pull_all(const struct pull *pull)
{
    int64_t found = 0;
    int code = fleet_execute(pull->fleet, what, pull->err, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");

    if (code)
        return code;
    code = db_exec(pull->db, "PRAGMA foreign_keys = OFF; BEGIN", what, pull->err);
    if (!code)
        code = pull_shared(pull);
    for (size_t i = 0; i < fleet_table_count && !code; i++)
        code = pull_table(pull, &fleet_tables[i]);
    if (!code)
        code = db_number(pull->db, what, &found, pull->err, "SELECT count(*) FROM main.runs", "");
    if (!code && !found)
        code = error_say(pull->err, -ENOENT,
                         "%s: the fleet has no run %lld (list them with tracectl fleet runs)", what,
                         pull->number);
    if (!code)
        code = db_commit(pull->db, what, pull->err);
    fleet_execute(pull->fleet, what, NULL, "ROLLBACK");
    return code;
}

int fleet_pull_run(struct fleet *fleet, int64_t run_id, struct tracestore *store, bool *ret_new,
                   struct error *err)
{
    CLEANUP(cleanup_scratch) char *scratch = NULL;
    CLEANUP(cleanup_store) struct tracestore *pulled = NULL;
    struct trace_merged merged = {0};
    struct pull pull = {.fleet = fleet, .number = run_id, .err = err};
    int code = fleet_scratch_path(&scratch, err);

    if (!code)
        code = tracestore_open(scratch, TRACESTORE_CREATE, &pulled, err);
    if (code)
        return code;
    pull.db = tracestore_db(pulled);
    code = pull_all(&pull);
    tracestore_free(take_pointer(pulled));
    if (!code)
        code = tracestore_merge(store, scratch, &merged, err);
    *ret_new = merged.runs;
    return code;
}
