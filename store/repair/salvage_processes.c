/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Salvaging process events: as salvage.c does with calls. Lists of names are made anew. */
#include <errno.h>
#include <zlib.h>

#include "base/array.h"
#include "base/error.h"
#include "store/repair/salvage.h"
#include "store/segment/call_list.h"
#include "store/streams/process_census.h"

static const char what[] = "cannot salvage the events of processes";

/* ------------------------------------------------------------------------------------------ segments */

enum {
    RUN,
    PROCESS,
    FIRST_SEQ = SALVAGE_FIRST_SEQ,
    EVENT_COUNT = SALVAGE_EVENT_COUNT,
    STREAM,
    FIRST_NS,
    LAST_NS,
    CODEC,
    CHECKSUM,
    DATA
};
#define COLUMNS "run_id, process_id, first_seq, event_count, stream, first_ns, last_ns, codec, checksum, data"

/* Names for salvage_invent. */
static int note_names(struct salvage *salvage, int64_t stream, const struct function_calls *names,
                      size_t count)
{
    static const char *const inserts[] = {
        [PROCESS_STREAM_GO] = "INSERT OR IGNORE INTO temp.used_functions VALUES (?1)",
        [PROCESS_STREAM_SYNC] = "INSERT OR IGNORE INTO temp.used_sites VALUES (?1)",
    };
    int code = 0;

    for (size_t i = 0; i < count && !code; i++)
        code = db_run(salvage->db, what, salvage->err, inserts[stream], "i", (int64_t)names[i].function);
    return code;
}

static int insert_segment(struct salvage *salvage, sqlite3_stmt *row)
{
    AUTO_FREE struct function_calls *names = calloc(salvage->census.count + 1, sizeof(*names));
    AUTO_BYTES list = {0};
    int code;

    if (!names)
        return error_no_memory(salvage->err);
    census_list(&salvage->census, names);
    if (call_list_pack(names, salvage->census.count, &list))
        return error_no_memory(salvage->err);
    code = note_names(salvage, sqlite3_column_int64(row, STREAM), names, salvage->census.count);
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
    int64_t stream = sqlite3_column_int64(row, STREAM), taken = 0;
    struct process_extent extent = {.events = (uint64_t)sqlite3_column_int64(row, EVENT_COUNT)};
    int code;

    census_clear(&salvage->census);
    if (crc32(0, data, (uInt)size) != (uint32_t)sqlite3_column_int64(row, CHECKSUM))
        return -EBADMSG;
    code = process_census_take(&salvage->census, stream, data, size, &extent);
    if (!code)
        code = db_number(salvage->db, what, &taken, salvage->err,
                         "SELECT count(*) FROM process_segments WHERE process_id = ?1 AND stream = ?2 AND"
                         " first_seq < ?3 + ?4 AND first_seq + event_count > ?3",
                         "iiii", sqlite3_column_int64(row, PROCESS), stream,
                         sqlite3_column_int64(row, FIRST_SEQ), sqlite3_column_int64(row, EVENT_COUNT));
    return !code && taken ? -EBADMSG : code;
}

static int take_segment(void *context, sqlite3_stmt *row)
{
    struct salvage *salvage = context;
    bool known = salvage_knows_place(salvage, row);
    int code = known && db_row_is(row, "iinninnnnb") ? check_segment(salvage, row) : -EBADMSG;

    if (!code)
        return insert_segment(salvage, row);
    if (code != -EBADMSG && code != -ENOTSUP)
        return code == -ENOMEM ? error_no_memory(salvage->err) : code;
    salvage->sum.lost_segments++;
    if (!known)
        return 0;
    return db_run(salvage->db, what, salvage->err,
                  "INSERT INTO temp.lost_process_segments VALUES (?1, ?2, ?3, ?4, ?5)", "iiiii",
                  sqlite3_column_int64(row, RUN), sqlite3_column_int64(row, PROCESS),
                  sqlite3_column_int64(row, STREAM), sqlite3_column_int64(row, FIRST_SEQ),
                  sqlite3_column_int64(row, EVENT_COUNT));
}

static int copy_segments(struct salvage *salvage)
{
    struct table_losses losses = {0};
    int code;

    sqlite3_finalize(take_pointer(salvage->insert));
    code = db_prepare(salvage->db,
                      "INSERT INTO process_segments (" COLUMNS
                      ", names) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
                      what, &salvage->insert, salvage->err);
    if (!code)
        code = table_read(salvage->from, "process_segments", COLUMNS, take_segment, salvage, &losses);
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

int salvage_processes_copy(struct salvage *salvage)
{
    static const struct {
        const char *table, *columns;
    } tables[] = {
        {"go_programs", "process_id, run_id, image_id, version, operations, from_start, from_ns"},
        {"go_wait_reasons", "process_id, number, name"},
        {"go_usages", "usage_id, image_id, function, file, line, operation, standard, blocks"},
        {"go_usage_cases", "usage_id, number, line, sends"},
        {"sync_processes", "process_id, run_id, from_ns, from_start, library, why_not"},
        {"sync_channels", "run_id, channel, kind, name, local, remote, device, inode, net, from_start"},
        {"sync_functions", "run_id, number, role, name"},
    };
    int code = db_exec(
        salvage->db,
        "CREATE TEMP TABLE lost_process_segments (run_id, process_id, stream, first_seq, event_count)", what,
        salvage->err);

    for (size_t i = 0; i < ARRAY_SIZE(tables) && !code; i++)
        code = salvage_copy_table(salvage, tables[i].table, tables[i].columns);
    return code ? code : copy_segments(salvage);
}

int salvage_processes_invent(struct salvage *salvage)
{
    static const char *const orphans[] = {
        "DELETE FROM go_programs WHERE run_id NOT IN (SELECT run_id FROM runs)",
        "DELETE FROM go_programs WHERE process_id NOT IN (SELECT process_id FROM processes)",
        "DELETE FROM sync_processes WHERE run_id NOT IN (SELECT run_id FROM runs)",
        "DELETE FROM sync_processes WHERE process_id NOT IN (SELECT process_id FROM processes)",
        "DELETE FROM sync_channels WHERE run_id NOT IN (SELECT run_id FROM runs)",
        "DELETE FROM sync_functions WHERE run_id NOT IN (SELECT run_id FROM runs)",
    };
    static const char *const statements[] = {
        "INSERT INTO processes (process_id, run_id, pid, exe, argv, started_ns)"
        " SELECT process_id, min(run_id), 0, '', '', 0 FROM process_segments"
        " WHERE process_id NOT IN (SELECT process_id FROM processes) GROUP BY process_id",
        "INSERT INTO go_programs (process_id, run_id, image_id, version, operations, from_start, from_ns)"
        " SELECT process_id, min(run_id), -1, '', 1, 0, min(first_ns) FROM process_segments"
        " WHERE stream = 1 AND process_id NOT IN (SELECT process_id FROM go_programs) GROUP BY process_id",
        "INSERT INTO sync_processes (process_id, run_id, from_ns, from_start, library, why_not)"
        " SELECT process_id, min(run_id), min(first_ns), 0, NULL, 'its description was lost'"
        " FROM process_segments WHERE stream = 2"
        " AND process_id NOT IN (SELECT process_id FROM sync_processes) GROUP BY process_id",
    };
    int code = salvage_execute_all(salvage, orphans, ARRAY_SIZE(orphans), &salvage->sum.lost_rows);

    return code ? code
                : salvage_execute_all(salvage, statements, ARRAY_SIZE(statements), &salvage->sum.invented);
}

int salvage_processes_record_losses(struct salvage *salvage)
{
    static const char *const statements[] = {
        "INSERT INTO losses (run_id, ns, count, cause) SELECT run_id, first_ns, first_seq - behind, 'damaged'"
        " FROM (SELECT run_id, first_seq, first_ns, lag(first_seq + event_count, 1, 0)"
        "  OVER (PARTITION BY process_id, stream ORDER BY first_seq) AS behind FROM process_segments)"
        " WHERE first_seq > behind",
        "INSERT INTO losses (run_id, ns, count, cause)"
        " SELECT r.run_id, r.started_ns, l.event_count, 'damaged' FROM temp.lost_process_segments l"
        " JOIN runs r USING (run_id) WHERE l.first_seq >= (SELECT coalesce(max(first_seq + event_count), 0)"
        "  FROM process_segments s WHERE s.process_id = l.process_id AND s.stream = l.stream)",
    };
    uint64_t losses = 0;

    return salvage_execute_all(salvage, statements, ARRAY_SIZE(statements), &losses);
}
