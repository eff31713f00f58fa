/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A run into the fleet, in one transaction: it is there wholly or not at all. Where the connection breaks while the
 * server commits, nobody knows which; the next try finds the run by its key, or ships it again.
 *
 * The run is first copied into a store of its own (store/merge), which decodes all of it: what is damaged does not leave
 * the host.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "collector/fleet/fleet_tables.h"
#include "collector/fleet/fleet_text.h"
#include "store/api/tracestore.h"
#include "store/db/column_types.h"

static const char what[] = "cannot ship the run";

DEFINE_CLEANUP(cleanup_store, struct tracestore *, tracestore_free)
DEFINE_CLEANUP(cleanup_scratch, char *, fleet_scratch_remove)

struct ship {
    struct fleet *fleet;
    struct tracestore *store; /* of the one run */
    sqlite3 *db;
    int64_t run_id;  /* in `store` */
    char number[24]; /* in the fleet */
    struct error *err;
};

/* ------------------------------------------------------------------------------------------ the run's row */

/* The parameters of the row: texts as PostgreSQL keeps them, and numbers. */
enum { NAME, COMMAND, HOST, KERNEL, STARTED, ENDED, STATUS, OPTIONS, TOOL_VERSION, RECORDER, OF_STORE };
enum { THREADS = OF_STORE, EVENTS, LOST, COMPLETE, STORED, PARAMETERS };
#define RUN_SQL \
    "SELECT name, command, host, kernel, started_ns, ended_ns, exit_status, options, tool_version, recorder" \
    " FROM main.runs WHERE run_id = ?1"

static int add_column(struct bytes *value, sqlite3_stmt *row, int column)
{
    return fleet_text_encode((const char *)sqlite3_column_text(row, column),
                             (size_t)sqlite3_column_bytes(row, column), value) ||
                   bytes_add_u8(value, 0)
               ? -ENOMEM
               : 0;
}

static int add_totals(struct ship *ship, struct bytes values[PARAMETERS])
{
    struct tracestore_totals totals;
    int code = tracestore_run_totals(ship->store, ship->run_id, &totals, ship->err);
    const uint64_t numbers[] = {totals.threads, totals.events, totals.lost, totals.complete,
                                totals.stored_bytes};
    char text[24];

    for (int i = 0; !code && i < PARAMETERS - THREADS; i++) {
        snprintf(text, sizeof(text), "%llu", (unsigned long long)numbers[i]);
        if (bytes_add(&values[THREADS + i], text, strlen(text) + 1))
            code = error_no_memory(ship->err);
    }
    return code;
}

static int read_values(struct ship *ship, struct bytes values[PARAMETERS])
{
    AUTO_STATEMENT *row = NULL;
    int result, code = db_prepare(ship->db, RUN_SQL, what, &row, ship->err);

    if (code)
        return code;
    db_bind(row, "i", ship->run_id);
    result = db_row(row, "ttttnNIttt");
    if (result != SQLITE_ROW)
        return result == SQLITE_DONE ? error_say(ship->err, -ENOENT, "%s: there is no such run", what)
                                     : db_fail(ship->db, ship->err, what);
    for (int i = 0; i < OF_STORE && !code; i++)
        if (sqlite3_column_type(row, i) != SQLITE_NULL && add_column(&values[i], row, i))
            code = error_no_memory(ship->err);
    return code ? code : add_totals(ship, values);
}

static void release_values(struct bytes values[PARAMETERS], const char *parameters[PARAMETERS])
{
    for (int i = 0; i < PARAMETERS; i++) {
        bytes_release(&values[i]);
        parameters[i] = NULL;
    }
}

/* Whether the fleet has the run. One that has become larger since is deleted: more parts of its job have joined it. */
static int find_run(struct ship *ship, const char *const *parameters, bool *ret_present)
{
    const char *key[] = {parameters[HOST], parameters[RECORDER], parameters[STARTED],
                         parameters[NAME], parameters[THREADS],  parameters[EVENTS]};
    PGresult *result = NULL;
    int code = fleet_query(
        ship->fleet, what, NULL, ship->err,
        "DELETE FROM tracectl.runs WHERE host = $1 AND recorder = $2 AND started_ns = $3 AND name = $4"
        " AND (threads < $5 OR events < $6)",
        6, key);

    if (!code)
        code = fleet_query(
            ship->fleet, what, &result, ship->err,
            "SELECT 1 FROM tracectl.runs WHERE host = $1 AND recorder = $2 AND started_ns = $3 AND name = $4",
            4, key);
    *ret_present = result && PQntuples(result);
    PQclear(result);
    return code;
}

static int insert_values(struct ship *ship, const char *const *parameters, bool *ret_new)
{
    PGresult *result = NULL;
    int code = fleet_query(
        ship->fleet, what, &result, ship->err,
        "INSERT INTO tracectl.runs (name, command, host, kernel, started_ns, ended_ns, exit_status,"
        " options, tool_version, recorder, threads, events, lost, complete, stored_bytes)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14::int::boolean, $15)"
        " ON CONFLICT DO NOTHING RETURNING run_id",
        PARAMETERS, parameters);

    if (code)
        return code;
    *ret_new = PQntuples(result) == 1; /* else somebody else was faster */
    if (*ret_new)
        snprintf(ship->number, sizeof(ship->number), "%s", PQgetvalue(result, 0, 0));
    PQclear(result);
    return 0;
}

/* ------------------------------------------------------------------------------------------ rows */

static int copy_rows(struct ship *ship, const char *table, const char *columns, const char *sql,
                     const char *types)
{
    char copy[512];

    snprintf(copy, sizeof(copy), "COPY %s (%s) FROM STDIN (FORMAT binary)", table, columns);
    return fleet_copy_in(ship->fleet, copy, ship->db, sql, types, ship->err);
}

/* The run's number comes as a column of the query. */
static int copy_table(struct ship *ship, const struct fleet_table *table)
{
    AUTO_FREE char *types = column_types_of(ship->db, table->name, table->columns);
    AUTO_FREE char *all = NULL;
    char name[64], columns[256], sql[512];

    if (!types || asprintf(&all, "i%s", types) < 0) {
        all = NULL;
        return error_no_memory(ship->err);
    }
    snprintf(name, sizeof(name), "tracectl.%s", table->name);
    snprintf(columns, sizeof(columns), "run_id, %s", table->columns);
    snprintf(sql, sizeof(sql), "SELECT %s, %s FROM main.%s", ship->number, table->columns, table->name);
    return copy_rows(ship, name, columns, sql, all);
}

/* What runs share: rows that are new, in the order of their keys, so that two who add the same ones do not wait for each
 * other in a circle; then the numbers that this run has for them. */
static int add_shared(struct ship *ship)
{
    static const char stage[] =
        "CREATE TEMP TABLE new_images (local_id bigint, path text, build_id text, kind text) ON COMMIT DROP;"
        "CREATE TEMP TABLE new_functions (local_id bigint, local_image bigint, name text, demangled text, address bigint,"
        " size bigint, file text, line bigint, aliases text) ON COMMIT DROP;"
        "CREATE TEMP TABLE new_calls (local_id bigint, calls bigint) ON COMMIT DROP";
    char sql[2048];
    int code = fleet_execute(ship->fleet, what, ship->err, stage);

    if (!code)
        code = copy_rows(ship, "new_images", "local_id, path, build_id, kind",
                         "SELECT image_id, path, build_id, kind FROM main.images", "ittt");
    if (!code)
        code = copy_rows(ship, "new_functions",
                         "local_id, local_image, name, demangled, address, size, file, line, aliases",
                         "SELECT function_id, image_id, name, demangled, address, size, file, line, aliases"
                         " FROM main.functions",
                         "iitTiiTIT");
    if (!code)
        code = copy_rows(ship, "new_calls", "local_id, calls",
                         "SELECT function_id, sum(calls) FROM segment_functions GROUP BY function_id", "in");
    snprintf(
        sql, sizeof(sql),
        "INSERT INTO tracectl.images (path, build_id, kind) SELECT path, build_id, kind FROM new_images"
        " ORDER BY md5(path), build_id, kind ON CONFLICT DO NOTHING;"
        "INSERT INTO tracectl.run_images SELECT %1$s, local_id, image_id FROM new_images n JOIN tracectl.images i"
        " ON md5(i.path) = md5(n.path) AND i.path = n.path AND i.build_id = n.build_id AND i.kind = n.kind;"
        "INSERT INTO tracectl.functions (image_id, name, demangled, address, size, file, line, aliases)"
        " SELECT r.image_id, name, demangled, address, size, file, line, aliases FROM new_functions n"
        " JOIN tracectl.run_images r ON r.run_id = %1$s AND r.local_id = n.local_image"
        " ORDER BY r.image_id, address, md5(name) ON CONFLICT DO NOTHING;"
        "INSERT INTO tracectl.run_functions SELECT %1$s, n.local_id, f.function_id, coalesce(c.calls, 0)"
        " FROM new_functions n JOIN tracectl.run_images r ON r.run_id = %1$s AND r.local_id = n.local_image"
        " JOIN tracectl.functions f ON f.image_id = r.image_id AND f.address = n.address AND md5(f.name) = md5(n.name)"
        " AND md5(coalesce(f.demangled, '')) = md5(coalesce(n.demangled, '')) LEFT JOIN new_calls c"
        " ON c.local_id = n.local_id",
        ship->number);
    return code ? code : fleet_execute(ship->fleet, what, ship->err, sql);
}

static int ship_rows(struct ship *ship, const char *const *parameters, bool *ret_new)
{
    int code = insert_values(ship, parameters, ret_new);

    if (code || !*ret_new)
        return code;
    code = add_shared(ship);
    for (size_t i = 0; i < fleet_table_count && !code; i++)
        code = copy_table(ship, &fleet_tables[i]);
    return code;
}

/* In the transaction that has begun: from the store at `path`. */
static int ship_new(struct ship *ship, const char *path, const char *const *parameters, bool *ret_new)
{
    CLEANUP(cleanup_scratch) char *scratch = NULL;
    CLEANUP(cleanup_store) struct tracestore *store = NULL;
    struct trace_merged merged = {0};
    int64_t run_id = ship->run_id;
    int code = fleet_scratch_path(&scratch, ship->err);

    if (!code)
        code = tracestore_open(scratch, TRACESTORE_CREATE, &store, ship->err);
    if (!code)
        code = tracestore_merge_run(store, path, run_id, &merged, ship->err);
    if (code)
        return code;
    ship->db = tracestore_db(store);
    return ship_rows(ship, parameters, ret_new);
}

static int ship_run(struct ship *ship, const char *path, const char *const *parameters, bool *ret_new)
{
    bool present = false;
    int code = fleet_execute(ship->fleet, what, ship->err, "BEGIN");

    if (code)
        return code;
    code = find_run(ship, parameters, &present);
    if (!code && !present)
        code = ship_new(ship, path, parameters, ret_new);
    if (!code)
        return fleet_execute(ship->fleet, what, ship->err, "COMMIT");
    fleet_execute(ship->fleet, what, NULL, "ROLLBACK");
    return code;
}

int fleet_ship_run(struct fleet *fleet, const char *path, int64_t run_id, bool *ret_new, struct error *err)
{
    CLEANUP(cleanup_store) struct tracestore *store = NULL;
    struct ship ship = {.fleet = fleet, .run_id = run_id, .err = err};
    struct bytes values[PARAMETERS] = {0};
    const char *parameters[PARAMETERS] = {NULL};
    int code = tracestore_open(path, TRACESTORE_READ, &store, err);

    *ret_new = false;
    if (code)
        return code;
    ship.store = store;
    ship.db = tracestore_db(store);
    code = read_values(&ship, values);
    for (int i = 0; i < PARAMETERS; i++)
        parameters[i] = (const char *)values[i].data;
    if (!code)
        code = ship_run(&ship, path, parameters, ret_new);
    release_values(values, parameters);
    return code;
}
