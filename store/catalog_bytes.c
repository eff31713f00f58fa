/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/catalog_bytes.h"

#include "base/error.h"
#include "store/db/name_index.h"
#include "store/db/store.h"
#include "store/segment/segment_counts.h"

static const char what[] = "cannot read the catalog";

/* ------------------------------------------------------------------------------------------ cells */

/* SQLite's varints have eight bits in a ninth byte. */
static uint64_t varint_bytes(uint64_t value)
{
    uint64_t bytes = 1;

    while (value >>= 7)
        bytes++;
    return bytes < 9 ? bytes : 9;
}

/* Bytes of an integer in a record: 0 and 1 stand in the header. */
static uint64_t integer_bytes(int64_t value)
{
    static const unsigned sizes[] = {1, 2, 3, 4, 6};
    uint64_t magnitude = (uint64_t)(value < 0 ? ~value : value);

    if (value == 0 || value == 1)
        return 0;
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
        if (magnitude >> (8 * sizes[i] - 1) == 0)
            return sizes[i];
    return 8;
}

/* Bytes of a column's value in a record, with its type in the record's header. */
static uint64_t value_bytes(sqlite3_stmt *row, int column)
{
    uint64_t size;

    switch (sqlite3_column_type(row, column)) {
    case SQLITE_NULL:
        return 1;
    case SQLITE_INTEGER:
        return 1 + integer_bytes(sqlite3_column_int64(row, column));
    case SQLITE_FLOAT:
        return 9;
    default:
        size = (uint64_t)sqlite3_column_bytes(row, column);
        return varint_bytes(13 + 2 * size) + size;
    }
}

#define CELL_POINTER 2

/* An entry of an index, or a row of a table WITHOUT ROWID: a record of these columns. */
static uint64_t key_bytes(sqlite3_stmt *row, int first, int count)
{
    uint64_t bytes = 1;

    for (int i = first; i < first + count; i++)
        bytes += value_bytes(row, i);
    return CELL_POINTER + varint_bytes(bytes) + bytes;
}

/* A row of a table whose first column is its INTEGER PRIMARY KEY: in the record there is a NULL for it. */
static uint64_t row_bytes(sqlite3_stmt *row, int count)
{
    uint64_t bytes = 2;

    for (int i = 1; i < count; i++)
        bytes += value_bytes(row, i);
    return CELL_POINTER + varint_bytes(bytes) + varint_bytes((uint64_t)sqlite3_column_int64(row, 0)) + bytes;
}

/* ------------------------------------------------------------------------------------------ rows */

/* Rows of a table by a number, ?1: all columns in their order, then those of each index. */
struct stored_rows {
    const char *sql;
    int columns;
    int indexes[2];
    bool keyed;      /* WITHOUT ROWID */
    uint64_t hidden; /* bytes of each row that the columns do not show */
};

static void add_row(sqlite3_stmt *row, const struct stored_rows *rows, struct catalog_bytes *bytes)
{
    int column = rows->columns;

    bytes->rows +=
        rows->hidden + (rows->keyed ? key_bytes(row, 0, rows->columns) : row_bytes(row, rows->columns));
    for (size_t i = 0; i < ARRAY_SIZE(rows->indexes) && rows->indexes[i]; i++) {
        bytes->indexes += key_bytes(row, column, rows->indexes[i]);
        column += rows->indexes[i];
    }
}

static int add_rows(sqlite3 *db, sqlite3_stmt *row, const struct stored_rows *rows, int64_t number,
                    struct catalog_bytes *bytes, struct error *err)
{
    int result;

    db_bind(row, "i", number);
    while ((result = sqlite3_step(row)) == SQLITE_ROW)
        add_row(row, rows, bytes);
    sqlite3_reset(row);
    return result == SQLITE_DONE ? 0 : db_fail(db, err, what);
}

static int add_table(sqlite3 *db, const struct stored_rows *rows, int64_t number, struct catalog_bytes *bytes,
                     struct error *err)
{
    AUTO_STATEMENT *row = NULL;
    int code = db_prepare(db, rows->sql, what, &row, err);

    return code ? code : add_rows(db, row, rows, number, bytes, err);
}

/* What has the run's number in it. */
static const struct stored_rows run_rows[] = {
    {.sql = "SELECT run_id, name, command, host, kernel, started_ns, ended_ns, exit_status, options, "
            "tool_version, "
            "recorder, name, run_id FROM runs WHERE run_id = ?1",
     .columns = 11,
     .indexes = {2}},
    {.sql = "SELECT run_id, key, value FROM tags WHERE run_id = ?1", .columns = 3, .keyed = true},
    {.sql = "SELECT process_id, run_id, pid, parent_process_id, rank, exe, argv, started_ns, ended_ns, "
            "exit_status,"
            " run_id, process_id FROM processes WHERE run_id = ?1",
     .columns = 10,
     .indexes = {2}},
    {.sql = "SELECT thread_id, run_id, process_id, tid, label, name, started_ns, ended_ns, returns,"
            " run_id, label, thread_id, process_id, thread_id FROM threads WHERE run_id = ?1",
     .columns = 9,
     .indexes = {3, 2}},
    {.sql = "SELECT loss_id, run_id, thread_id, seq, ns, count, cause, calls, returns, run_id, loss_id FROM "
            "losses"
            " WHERE run_id = ?1",
     .columns = 9,
     .indexes = {2}},
    {.sql = "SELECT rowid, run_id, function_id, from_ns, to_ns, cause, calls_per_second, run_id, rowid FROM "
            "blind"
            " WHERE run_id = ?1",
     .columns = 7,
     .indexes = {2}},
};

/* The length of `data` in the row and the number of its first page of its own. */
#define DATA_HEAD 8

/* The same of goroutines. */
static const struct stored_rows go_rows[] = {
    {.sql =
         "SELECT process_id, run_id, image_id, version, operations, from_start, from_ns, run_id, process_id"
         " FROM go_programs WHERE run_id = ?1",
     .columns = 7,
     .indexes = {2}},
    {.sql = "SELECT process_id, number, name FROM go_programs JOIN go_wait_reasons USING (process_id)"
            " WHERE run_id = ?1",
     .columns = 3,
     .keyed = true},
    {.sql = "SELECT segment_id, run_id, process_id, stream, first_seq, event_count, first_ns, last_ns, codec,"
            " checksum, names, process_id, stream, first_seq, segment_id, run_id, segment_id"
            " FROM process_segments WHERE run_id = ?1",
     .columns = 11,
     .indexes = {4, 2},
     .hidden = DATA_HEAD},
    {.sql = "SELECT usage_id, image_id, function, file, line, operation, standard, blocks, image_id, usage_id"
            " FROM go_usages WHERE image_id IN (SELECT image_id FROM go_programs WHERE run_id = ?1)",
     .columns = 8,
     .indexes = {2}},
    {.sql = "SELECT c.usage_id, number, c.line, sends FROM go_usages u JOIN go_usage_cases c USING (usage_id)"
            " WHERE image_id IN (SELECT image_id FROM go_programs WHERE run_id = ?1)",
     .columns = 4,
     .keyed = true},
};

/* And of synchronisation. */
static const struct stored_rows sync_rows[] = {
    {.sql = "SELECT process_id, run_id, from_ns, from_start, library, why_not"
            " FROM sync_processes WHERE run_id = ?1",
     .columns = 6},
    {.sql = "SELECT run_id, channel, kind, name, local, remote, device, inode, net, from_start"
            " FROM sync_channels WHERE run_id = ?1",
     .columns = 10,
     .keyed = true},
    {.sql = "SELECT run_id, number, role, name FROM sync_functions WHERE run_id = ?1",
     .columns = 4,
     .keyed = true},
};

static const struct stored_rows
    segments = {.sql =
                    "SELECT segment_id, run_id, thread_id, first_seq, event_count, first_ns, last_ns, codec,"
                    " checksum, raw_bytes, functions, thread_id, first_seq, segment_id, run_id, segment_id"
                    " FROM segments WHERE run_id = ?1",
                .columns = 11,
                .indexes = {3, 2},
                .hidden = DATA_HEAD},
    functions_rows =
        {.sql =
             "SELECT function_id, image_id, name, demangled, address, size, file, line, name_hash, aliases,"
             " name_hash, function_id FROM functions WHERE function_id = ?1",
         .columns = 10,
         .indexes = {2}},
    images = {.sql =
                  "SELECT image_id, path, build_id, kind, path, build_id, kind, image_id FROM images"
                  " WHERE image_id = ?1",
              .columns = 4,
              .indexes = {4}},
    call_sites = {
        "SELECT site_id, image_id, address, function_id, file, line, image_id, address, site_id"
        " FROM call_sites WHERE ?1 NOTNULL",
        .columns = 6, .indexes = {3}};

static int add_tables(sqlite3 *db, const struct stored_rows *rows, size_t count, int64_t run_id,
                      struct catalog_bytes *bytes, struct error *err)
{
    int code = 0;

    for (size_t i = 0; i < count && !code; i++)
        code = add_table(db, &rows[i], run_id, bytes, err);
    return code;
}

static int add_run(sqlite3 *db, int64_t run_id, struct catalog_bytes *bytes, struct error *err)
{
    int code = add_tables(db, run_rows, ARRAY_SIZE(run_rows), run_id, bytes, err);

    if (!code)
        code = add_table(db, &segments, run_id, bytes, err);
    if (!code)
        code = add_tables(db, go_rows, ARRAY_SIZE(go_rows), run_id, bytes, err);
    return code ? code : add_tables(db, sync_rows, ARRAY_SIZE(sync_rows), run_id, bytes, err);
}

/* ------------------------------------------------------------------------------------------ shared rows */

/* The functions and their images. */
static int add_functions(sqlite3 *db, const struct census *functions, struct catalog_bytes *bytes,
                         struct error *err)
{
    const struct stored_rows *rows = &functions_rows;
    AUTO_STATEMENT *row = NULL;
    AUTO_CENSUS seen = {0};
    int code = db_prepare(db, rows->sql, what, &row, err);

    for (size_t i = 0; i < functions->table_size && !code; i++) {
        if (!functions->table[i].function)
            continue;
        db_bind(row, "i", (int64_t)functions->table[i].function);
        if (sqlite3_step(row) == SQLITE_ROW) {
            add_row(row, rows, bytes);
            if (census_add_calls(&seen, (uint32_t)sqlite3_column_int64(row, 1), 0))
                return error_no_memory(err);
        }
        if (sqlite3_reset(row) != SQLITE_OK)
            return db_fail(db, err, what);
    }
    for (size_t i = 0; i < seen.table_size && !code; i++)
        if (seen.table[i].function)
            code = add_table(db, &images, seen.table[i].function, bytes, err);
    return code;
}

/* Whether a thread of the run keeps call sites: SEGMENT_CALL_SITES in the third byte of its first segment. */
#define RUN_HAS_SITES \
    "SELECT EXISTS (SELECT 1 FROM segments WHERE run_id = ?1 AND first_seq = 0" \
    " AND instr('2367ABEF', substr(hex(substr(data, 3, 1)), 2)))"

static int add_sites(sqlite3 *db, int64_t run_id, const struct census *functions, struct catalog_bytes *bytes,
                     struct error *err)
{
    AUTO_STATEMENT *row = NULL;
    int64_t has_sites = 0;
    int result = SQLITE_DONE, code = db_number(db, what, &has_sites, err, RUN_HAS_SITES, "i", run_id);

    if (!code && has_sites)
        code = db_prepare(db, call_sites.sql, what, &row, err);
    if (code || !has_sites)
        return code;
    db_bind(row, "i", run_id);
    while ((result = sqlite3_step(row)) == SQLITE_ROW)
        if (sqlite3_column_type(row, 3) == SQLITE_NULL ||
            census_find(functions, (uint32_t)sqlite3_column_int64(row, 3)))
            add_row(row, &call_sites, bytes);
    return result == SQLITE_DONE ? 0 : db_fail(db, err, what);
}

/* The run's share of the index of trigrams, by the number of functions. */
static int add_trigrams(sqlite3 *db, const struct census *functions, struct catalog_bytes *bytes,
                        struct error *err)
{
    int64_t size = 0, up_to = 0, indexed = 0, of_run = 0;
    int code =
        db_number(db, what, &size, err, "SELECT sum(length(block)) FROM main.function_trigrams_data", "");

    if (!code)
        code = db_number(db, what, &up_to, err, "SELECT up_to FROM main.indexed_functions", "");
    if (!code)
        code = db_number(db, what, &indexed, err,
                         "SELECT count(*) FROM main.functions WHERE function_id <= ?1", "i", up_to);
    for (size_t i = 0; i < functions->table_size && !code; i++)
        of_run += functions->table[i].function && functions->table[i].function <= up_to;
    if (!code && indexed)
        bytes->indexes += (uint64_t)((double)size * (double)of_run / (double)indexed);
    return code;
}

int catalog_bytes_count(sqlite3 *db, int64_t run_id, const struct census *functions,
                        struct catalog_bytes *ret_bytes, struct error *err)
{
    struct catalog_bytes bytes = {0};
    int code = add_run(db, run_id, &bytes, err);

    if (!code)
        code = add_functions(db, functions, &bytes, err);
    if (!code)
        code = add_sites(db, run_id, functions, &bytes, err);
    if (!code)
        code = add_trigrams(db, functions, &bytes, err);
    if (!code)
        *ret_bytes = bytes;
    return code;
}
