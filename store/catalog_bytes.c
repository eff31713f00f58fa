/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/catalog_bytes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "store/db/sqlite.h"

static const char what[] = "cannot read the catalog";

/* The functions that the run calls, as SQL; ?2 is a JSON array of them. */
#define CALLED "(SELECT value FROM json_each(?2))"

/* The rows that a run needs; ?1 is its number. */
static const struct needed {
    const char *table, *where;
} tables[] = {
    {"runs", "run_id = ?1"},
    {"tags", "run_id = ?1"},
    {"processes", "run_id = ?1"},
    {"threads", "run_id = ?1"},
    {"segments", "run_id = ?1"},
    {"process_segments", "run_id = ?1"},
    {"losses", "run_id = ?1"},
    {"blind", "run_id = ?1"},
    {"go_programs", "run_id = ?1"},
    {"go_wait_reasons", "process_id IN (SELECT process_id FROM main.go_programs WHERE run_id = ?1)"},
    {"go_usages", "image_id IN (SELECT image_id FROM main.go_programs WHERE run_id = ?1)"},
    {"go_usage_cases",
     "usage_id IN (SELECT usage_id FROM main.go_usages WHERE image_id IN"
     " (SELECT image_id FROM main.go_programs WHERE run_id = ?1))"},
    {"sync_processes", "run_id = ?1"},
    {"sync_channels", "run_id = ?1"},
    {"sync_functions", "run_id = ?1"},
    {"end_nodes", "run_id = ?1"},
    {"end_iterations", "run_id = ?1"},
    {"end_threads", "run_id = ?1"},
    {"functions", "function_id IN " CALLED},
    {"images", "image_id IN (SELECT image_id FROM main.functions WHERE function_id IN " CALLED ")"},
    /* Of a run that keeps call sites: SEGMENT_CALL_SITES in the third byte of a first segment. */
    {"call_sites",
     "(function_id ISNULL OR function_id IN " CALLED ") AND EXISTS (SELECT 1 FROM main.segments"
     " WHERE run_id = ?1 AND first_seq = 0 AND instr('2367ABEF', substr(hex(substr(data, 3, 1)), 2)))"},
};

/* The query of a table: the bytes of the rows and of their entries in indexes. A cell has about three bytes
 * of its own, and each column one in the record's header; an integer of n digits has about n / 2 bytes. */
static const char query_sql[] =
    "WITH sizes(name, bytes) AS (SELECT name, '1 + CASE typeof(\"' || name || '\") WHEN ''null'' THEN 0"
    " WHEN ''integer'' THEN length(\"' || name || '\") / 2 ELSE length(CAST(\"' || name || '\" AS BLOB)) END'"
    "  FROM pragma_table_info(?1, 'main') WHERE name <> 'data')"
    " SELECT 'SELECT sum(3 + ' || (SELECT group_concat(bytes, ' + ') FROM sizes) || '), sum('"
    "  || coalesce((SELECT group_concat('5 + ' || bytes, ' + ') FROM pragma_index_list(?1, 'main') l,"
    "   pragma_index_info(l.name, 'main') i JOIN sizes s ON s.name = i.name WHERE l.origin <> 'pk'), 0)"
    "  || ') FROM main.' || ?1 || ' WHERE '";

static int add_table(sqlite3 *db, const struct needed *needed, int64_t run_id, const char *functions,
                     struct catalog_bytes *bytes, struct error *err)
{
    AUTO_STATEMENT *query = NULL, *sums = NULL;
    AUTO_FREE char *sql = NULL;
    int code = db_prepare(db, query_sql, what, &query, err);

    if (code)
        return code;
    db_bind(query, "t", needed->table);
    if (sqlite3_step(query) != SQLITE_ROW)
        return db_fail(db, err, what);
    if (asprintf(&sql, "%s%s", (const char *)sqlite3_column_text(query, 0), needed->where) < 0)
        return error_no_memory(err);
    code = db_prepare(db, sql, what, &sums, err);
    if (code)
        return code;
    db_bind(sums, "it", run_id, functions);
    if (sqlite3_step(sums) != SQLITE_ROW)
        return db_fail(db, err, what);
    bytes->rows += (uint64_t)sqlite3_column_int64(sums, 0);
    bytes->indexes += (uint64_t)sqlite3_column_int64(sums, 1);
    return 0;
}

/* The run's share of the index of trigrams, by the number of functions. */
static int add_trigrams(sqlite3 *db, const struct census *functions, struct catalog_bytes *bytes,
                        struct error *err)
{
    int64_t share = 0;
    int code =
        db_number(db, what, &share, err,
                  "SELECT (SELECT sum(length(block)) FROM main.function_trigrams_data) * min(?1, count(*))"
                  " / max(1, count(*)) FROM main.functions"
                  " WHERE function_id <= (SELECT up_to FROM main.indexed_functions)",
                  "i", (int64_t)functions->count);

    bytes->indexes += (uint64_t)share;
    return code;
}

/* "[1,5,7]" in memory from malloc; NULL: none left. */
static char *json_of(const struct census *functions)
{
    char *text = malloc(12 * functions->count + 3), *to = text;

    if (!text)
        return NULL;
    *to++ = '[';
    for (size_t i = 0; i < functions->table_size; i++)
        if (functions->table[i].function)
            to += sprintf(to, "%s%u", to[-1] == '[' ? "" : ",", functions->table[i].function);
    strcpy(to, "]");
    return text;
}

int catalog_bytes_count(sqlite3 *db, int64_t run_id, const struct census *functions,
                        struct catalog_bytes *ret_bytes, struct error *err)
{
    AUTO_FREE char *called = json_of(functions);
    struct catalog_bytes bytes = {0};
    int code = called ? add_trigrams(db, functions, &bytes, err) : error_no_memory(err);

    for (size_t i = 0; i < ARRAY_SIZE(tables) && !code; i++)
        code = add_table(db, &tables[i], run_id, called, &bytes, err);
    if (!code)
        *ret_bytes = bytes;
    return code;
}
