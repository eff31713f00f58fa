/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Salvaging synchronisation events: as salvage_go.c does with those of goroutines. */
#include <errno.h>
#include <zlib.h>

#include "base/array.h"
#include "store/repair/salvage.h"
#include "store/streams/sync_codec.h"

static const char what[] = "cannot salvage synchronisation events";

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

/* Notes the call sites that the segment's events name. -EBADMSG: it is not whole. */
static int note_sites(struct salvage *salvage, const uint8_t *data, size_t size, uint64_t events)
{
    struct sync_decoder *decoder = NULL;
    struct process_event event;
    uint32_t noted = 0;
    int code = sync_decoder_open(data, size, events, &decoder);

    while (!code && (code = sync_decoder_next(decoder, &event)) == 0) {
        if (event.site && event.site != noted)
            code = db_run(salvage->db, what, salvage->err,
                          "INSERT OR IGNORE INTO temp.used_sites VALUES (?1)", "i", (int64_t)event.site);
        noted = event.site;
    }
    sync_decoder_free(decoder);
    return code == 1 ? 0 : code;
}

/* -EBADMSG: not whole, or its place is taken. */
static int check_segment(struct salvage *salvage, sqlite3_stmt *row)
{
    const uint8_t *data = sqlite3_column_blob(row, DATA);
    size_t size = (size_t)sqlite3_column_bytes(row, DATA);
    int64_t taken = 0;
    int code;

    if (crc32(0, data, (uInt)size) != (uint32_t)sqlite3_column_int64(row, CHECKSUM))
        return -EBADMSG;
    code = note_sites(salvage, data, size, (uint64_t)sqlite3_column_int64(row, EVENT_COUNT));
    if (!code)
        code = db_number(salvage->db, what, &taken, salvage->err,
                         "SELECT count(*) FROM sync_segments WHERE process_id = ?1 AND"
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

    if (!code) {
        for (int i = 0; i <= DATA; i++)
            sqlite3_bind_value(salvage->insert, i + 1, sqlite3_column_value(row, i));
        code = db_step(salvage->db, salvage->insert, what, salvage->err);
        sqlite3_clear_bindings(salvage->insert);
        return code ? code : salvage_row_written(salvage);
    }
    if (code != -EBADMSG && code != -ENOTSUP)
        return code == -ENOMEM ? error_no_memory(salvage->err) : code;
    salvage->sum.lost_segments++;
    if (!known)
        return 0;
    return db_run(salvage->db, what, salvage->err, "INSERT INTO temp.lost_sync VALUES (?1, ?2, ?3, ?4)",
                  "iiii", sqlite3_column_int64(row, RUN), sqlite3_column_int64(row, PROCESS),
                  sqlite3_column_int64(row, FIRST_SEQ), sqlite3_column_int64(row, EVENT_COUNT));
}

static int copy_segments(struct salvage *salvage)
{
    struct table_losses losses = {0};
    int code;

    sqlite3_finalize(take_pointer(salvage->insert));
    code = db_prepare(salvage->db,
                      "INSERT INTO sync_segments (" COLUMNS ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                      what, &salvage->insert, salvage->err);
    if (!code)
        code = table_read(salvage->from, "sync_segments", COLUMNS, take_segment, salvage, &losses);
    salvage->sum.lost_segments += losses.rows;
    salvage->sum.lost_stretches += losses.stretches;
    if (!code && (losses.rows || losses.stretches))
        code =
            db_exec(salvage->db,
                    "INSERT INTO losses (run_id, ns, cause) SELECT run_id, started_ns, 'damaged' FROM runs",
                    what, salvage->err);
    return code;
}

int salvage_sync_copy(struct salvage *salvage)
{
    static const struct {
        const char *table, *columns;
    } tables[] = {
        {"sync_processes", "process_id, run_id, from_ns, from_start, library, why_not"},
        {"sync_channels", "run_id, channel, kind, name, local, remote, device, inode, net, from_start"},
        {"sync_functions", "run_id, number, role, name"},
    };
    int code =
        db_exec(salvage->db, "CREATE TEMP TABLE lost_sync (run_id, process_id, first_seq, event_count)", what,
                salvage->err);

    for (size_t i = 0; i < ARRAY_SIZE(tables) && !code; i++)
        code = salvage_copy_table(salvage, tables[i].table, tables[i].columns);
    return code ? code : copy_segments(salvage);
}

int salvage_sync_invent(struct salvage *salvage)
{
    static const char *const statements[] = {
        "INSERT INTO processes (process_id, run_id, pid, exe, argv, started_ns)"
        " SELECT process_id, min(run_id), 0, '', '', 0 FROM sync_segments"
        " WHERE process_id NOT IN (SELECT process_id FROM processes) GROUP BY process_id",
        "INSERT INTO sync_processes (process_id, run_id, from_ns, from_start, library, why_not)"
        " SELECT process_id, min(run_id), min(first_ns), 0, NULL, 'its description was lost'"
        " FROM sync_segments WHERE process_id NOT IN (SELECT process_id FROM sync_processes)"
        " GROUP BY process_id",
    };
    static const char *const orphans[] = {
        "DELETE FROM sync_processes WHERE run_id NOT IN (SELECT run_id FROM runs)",
        "DELETE FROM sync_processes WHERE process_id NOT IN (SELECT process_id FROM processes)",
        "DELETE FROM sync_channels WHERE run_id NOT IN (SELECT run_id FROM runs)",
        "DELETE FROM sync_functions WHERE run_id NOT IN (SELECT run_id FROM runs)",
    };
    int code = salvage_execute_all(salvage, orphans, ARRAY_SIZE(orphans), &salvage->sum.lost_rows);

    return code ? code
                : salvage_execute_all(salvage, statements, ARRAY_SIZE(statements), &salvage->sum.invented);
}

int salvage_sync_tell_losses(struct salvage *salvage)
{
    static const char *const statements[] = {
        "INSERT INTO losses (run_id, ns, count, cause) SELECT run_id, first_ns, first_seq - behind, 'damaged'"
        " FROM (SELECT run_id, first_seq, first_ns, lag(first_seq + event_count, 1, 0)"
        "  OVER (PARTITION BY process_id ORDER BY first_seq) AS behind FROM sync_segments)"
        " WHERE first_seq > behind",
        "INSERT INTO losses (run_id, ns, count, cause)"
        " SELECT r.run_id, r.started_ns, l.event_count, 'damaged' FROM temp.lost_sync l"
        " JOIN runs r USING (run_id) WHERE l.first_seq >= (SELECT coalesce(max(first_seq + event_count), 0)"
        "  FROM sync_segments s WHERE s.process_id = l.process_id)",
    };
    uint64_t told = 0;

    return salvage_execute_all(salvage, statements, ARRAY_SIZE(statements), &told);
}
