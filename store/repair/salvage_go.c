/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Salvaging goroutine events: as salvage.c does with calls. Lists of functions are made anew. */
#include <errno.h>
#include <zlib.h>

#include "base/array.h"
#include "store/repair/salvage.h"
#include "store/segment/call_list.h"
#include "store/streams/go_codec.h"

static const char what[] = "cannot salvage goroutine events";

/* ------------------------------------------------------------------------------------------ segments */

enum {
    RUN,
    PROCESS,
    FIRST_SEQ = SALVAGE_FIRST_SEQ,
    EVENT_COUNT = SALVAGE_EVENT_COUNT,
    FIRST_NS,
    LAST_NS,
    CODEC,
    CHECKSUM,
    DATA
};
#define COLUMNS "run_id, process_id, first_seq, event_count, first_ns, last_ns, codec, checksum, data"

/* The functions that a segment's events name, to the census. -EBADMSG: it is not whole. */
static int decode_all(struct census *named, const uint8_t *data, size_t size, uint64_t events)
{
    struct go_decoder *decoder = NULL;
    struct process_event event;
    int code = go_decoder_open(data, size, events, &decoder);

    while (!code && (code = go_decoder_next(decoder, &event)) == 0) {
        bool function = event.kind == GO_EVENT_CREATE || event.kind == GO_EVENT_TEST;

        if ((event.site && census_add_calls(named, event.site, 1)) ||
            (function && event.value && census_add_calls(named, (uint32_t)event.value, 1)))
            code = -ENOMEM;
    }
    go_decoder_free(decoder);
    return code == 1 ? 0 : code;
}

/* Functions for salvage_go_invent. */
static int note_functions(struct salvage *salvage, const struct function_calls *functions, size_t count)
{
    int code = 0;

    for (size_t i = 0; i < count && !code; i++)
        code = db_run(salvage->db, what, salvage->err, "INSERT OR IGNORE INTO temp.go_functions VALUES (?1)",
                      "i", (int64_t)functions[i].function);
    return code;
}

static int insert_segment(struct salvage *salvage, sqlite3_stmt *row)
{
    AUTO_FREE struct function_calls *functions = calloc(salvage->census.count + 1, sizeof(*functions));
    AUTO_BYTES list = {0};
    int code;

    if (!functions)
        return error_no_memory(salvage->err);
    census_list(&salvage->census, functions);
    if (call_list_pack(functions, salvage->census.count, &list))
        return error_no_memory(salvage->err);
    code = note_functions(salvage, functions, salvage->census.count);
    if (code)
        return code;
    for (int i = 0; i <= DATA; i++)
        sqlite3_bind_value(salvage->insert, i + 1, sqlite3_column_value(row, i));
    sqlite3_bind_blob64(salvage->insert, DATA + 2, list.data, list.size, SQLITE_STATIC);
    code = db_step(salvage->db, salvage->insert, what, salvage->err);
    sqlite3_clear_bindings(salvage->insert);
    return code ? code : salvage_row_written(salvage);
}

/* -EBADMSG: not whole, or its place is taken. */
static int check_segment(struct salvage *salvage, sqlite3_stmt *row)
{
    const uint8_t *data = sqlite3_column_blob(row, DATA);
    size_t size = (size_t)sqlite3_column_bytes(row, DATA);
    int64_t taken = 0;
    int code;

    census_clear(&salvage->census);
    if (crc32(0, data, (uInt)size) != (uint32_t)sqlite3_column_int64(row, CHECKSUM))
        return -EBADMSG;
    code = decode_all(&salvage->census, data, size, (uint64_t)sqlite3_column_int64(row, EVENT_COUNT));
    if (!code)
        code = db_number(salvage->db, what, &taken, salvage->err,
                         "SELECT count(*) FROM go_segments WHERE process_id = ?1 AND"
                         " first_seq < ?2 + ?3 AND first_seq + event_count > ?2",
                         "iii", sqlite3_column_int64(row, PROCESS), sqlite3_column_int64(row, FIRST_SEQ),
                         sqlite3_column_int64(row, EVENT_COUNT));
    return !code && taken ? -EBADMSG : code;
}

static int take_segment(void *context, sqlite3_stmt *row)
{
    struct salvage *salvage = context;
    bool known = salvage_knows_place(salvage, row);
    int code = known && db_row_is(row, "iinnnnnnb") ? check_segment(salvage, row) : -EBADMSG;

    if (!code)
        return insert_segment(salvage, row);
    if (code != -EBADMSG && code != -ENOTSUP)
        return code == -ENOMEM ? error_no_memory(salvage->err) : code;
    salvage->sum.lost_segments++;
    if (!known)
        return 0;
    return db_run(salvage->db, what, salvage->err, "INSERT INTO temp.lost_go VALUES (?1, ?2, ?3, ?4)", "iiii",
                  sqlite3_column_int64(row, RUN), sqlite3_column_int64(row, PROCESS),
                  sqlite3_column_int64(row, FIRST_SEQ), sqlite3_column_int64(row, EVENT_COUNT));
}

static int copy_segments(struct salvage *salvage)
{
    struct table_losses losses = {0};
    int code;

    sqlite3_finalize(take_pointer(salvage->insert));
    code = db_prepare(salvage->db,
                      "INSERT INTO go_segments (" COLUMNS
                      ", functions) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
                      what, &salvage->insert, salvage->err);
    if (!code)
        code = table_read(salvage->from, "go_segments", COLUMNS, take_segment, salvage, &losses);
    salvage->sum.lost_segments += losses.rows;
    salvage->sum.lost_stretches += losses.stretches;
    if (!code && (losses.rows || losses.stretches))
        code =
            db_exec(salvage->db,
                    "INSERT INTO losses (run_id, ns, cause) SELECT run_id, started_ns, 'damaged' FROM runs",
                    what, salvage->err);
    return code;
}

/* ------------------------------------------------------------------------------------------ all of it */

int salvage_go_copy(struct salvage *salvage)
{
    static const struct {
        const char *table, *columns;
    } tables[] = {
        {"go_programs", "process_id, run_id, image_id, version, operations, from_start, from_ns"},
        {"go_wait_reasons", "process_id, number, name"},
        {"go_usages", "usage_id, image_id, function, file, line, operation, standard, blocks"},
        {"go_usage_cases", "usage_id, number, line, sends"},
    };
    int code = db_exec(salvage->db,
                       "CREATE TEMP TABLE lost_go (run_id, process_id, first_seq, event_count);"
                       "CREATE TEMP TABLE go_functions (function_id INTEGER PRIMARY KEY)",
                       what, salvage->err);

    for (size_t i = 0; i < ARRAY_SIZE(tables) && !code; i++)
        code = salvage_copy_table(salvage, tables[i].table, tables[i].columns);
    return code ? code : copy_segments(salvage);
}

int salvage_go_invent(struct salvage *salvage)
{
    static const char *const statements[] = {
        "INSERT INTO processes (process_id, run_id, pid, exe, argv, started_ns)"
        " SELECT process_id, min(run_id), 0, '', '', 0 FROM go_segments"
        " WHERE process_id NOT IN (SELECT process_id FROM processes) GROUP BY process_id",
        "INSERT INTO go_programs (process_id, run_id, image_id, version, operations, from_start, from_ns)"
        " SELECT process_id, min(run_id), -2, '', 1, 0, min(first_ns) FROM go_segments"
        " WHERE process_id NOT IN (SELECT process_id FROM go_programs) GROUP BY process_id",
        "INSERT INTO functions (function_id, image_id, name, address, size, name_hash)"
        " SELECT function_id, -2, 'lost_function_' || function_id, function_id, 0,"
        " name_hash('lost_function_' || function_id) FROM temp.go_functions"
        " WHERE function_id NOT IN (SELECT function_id FROM functions)",
        "INSERT INTO images (image_id, path, build_id, kind) SELECT image_id, 'lost image ' || image_id, '',"
        " 'library' FROM (SELECT image_id FROM go_programs UNION SELECT image_id FROM functions"
        " WHERE image_id = -2) WHERE image_id NOT IN (SELECT image_id FROM images)",
    };
    static const char *const orphans[] = {
        "DELETE FROM go_programs WHERE run_id NOT IN (SELECT run_id FROM runs)",
        "DELETE FROM go_programs WHERE process_id NOT IN (SELECT process_id FROM processes)",
        "DELETE FROM go_wait_reasons WHERE process_id NOT IN (SELECT process_id FROM processes)",
        "DELETE FROM go_usages WHERE image_id NOT IN (SELECT image_id FROM images)",
        "DELETE FROM go_usage_cases WHERE usage_id NOT IN (SELECT usage_id FROM go_usages)",
    };
    int code = salvage_execute_all(salvage, orphans, 2, &salvage->sum.lost_rows); /* before they are missed */

    if (!code)
        code = salvage_execute_all(salvage, statements, ARRAY_SIZE(statements), &salvage->sum.invented);
    return code ? code
                : salvage_execute_all(salvage, orphans + 2, ARRAY_SIZE(orphans) - 2, &salvage->sum.lost_rows);
}

int salvage_go_tell_losses(struct salvage *salvage)
{
    static const char *const statements[] = {
        "INSERT INTO losses (run_id, ns, count, cause) SELECT run_id, first_ns, first_seq - behind, 'damaged'"
        " FROM (SELECT run_id, first_seq, first_ns, lag(first_seq + event_count, 1, 0)"
        "  OVER (PARTITION BY process_id ORDER BY first_seq) AS behind FROM go_segments)"
        " WHERE first_seq > behind",
        "INSERT INTO losses (run_id, ns, count, cause)"
        " SELECT r.run_id, r.started_ns, l.event_count, 'damaged' FROM temp.lost_go l"
        " JOIN runs r USING (run_id) WHERE l.first_seq >= (SELECT coalesce(max(first_seq + event_count), 0)"
        "  FROM go_segments s WHERE s.process_id = l.process_id)",
    };
    uint64_t told = 0;

    return salvage_execute_all(salvage, statements, ARRAY_SIZE(statements), &told);
}
