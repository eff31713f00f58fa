/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Salvaging a damaged store into a new one.
 *
 * The catalog is copied row by row, past what cannot be read (table_reader.h). Segments are taken when their
 * checksum is right and they decode; the lists of their functions are made anew. Of the journal of
 * a run only what stands before the first damaged row can be trusted. Rows that others refer to and that are
 * lost are invented: a thread's events are worth more than its label. In the end every gap is told by a loss
 * of cause 'damaged', so that the new store passes tracestore_verify.
 *
 * The schema must be readable: a damaged first page takes all with it.
 */
#include <errno.h>
#include <string.h>
#include <zlib.h>

#include "base/error.h"
#include "store/db/column_types.h"
#include "store/db/name_index.h"
#include "store/repair/recover.h"
#include "store/repair/salvage.h"

#define ROWS_A_COMMIT 4096

static const char what[] = "cannot salvage";

/* ------------------------------------------------------------------------------------------ plain tables */

int salvage_row_written(struct salvage *salvage)
{
    if (++salvage->rows < ROWS_A_COMMIT)
        return 0;
    salvage->rows = 0;
    return db_exec(salvage->db, "COMMIT; BEGIN", what, salvage->err);
}

/* A row that contradicts the schema (a bit flipped in a key, say) is as good as lost. */
static int copy_row(void *context, sqlite3_stmt *row)
{
    struct salvage *salvage = context;
    int result;

    if (!db_row_is(row, salvage->types)) {
        salvage->sum.lost_rows++;
        return 0;
    }
    sqlite3_reset(salvage->insert);
    for (int i = 0; i < sqlite3_column_count(row); i++)
        sqlite3_bind_value(salvage->insert, i + 1, sqlite3_column_value(row, i));
    result = sqlite3_step(salvage->insert);
    sqlite3_reset(salvage->insert);
    if (result == SQLITE_CONSTRAINT || result == SQLITE_MISMATCH) {
        salvage->sum.lost_rows++;
        return 0;
    }
    return result == SQLITE_DONE ? salvage_row_written(salvage) : db_fail(salvage->db, salvage->err, what);
}

/* "INSERT INTO table (columns) VALUES (?1, ...)"; functions get the hash of their names anew. */
static int prepare_insert(struct salvage *salvage, const char *table, const char *columns)
{
    bool functions = strcmp(table, "functions") == 0;
    char sql[512];
    size_t length = (size_t)snprintf(sql, sizeof(sql), "INSERT INTO %s (%s%s) VALUES (?1", table, columns,
                                     functions ? ", name_hash" : "");
    int column = 1;

    for (const char *c = columns; *c; c++)
        if (*c == ',')
            length += (size_t)snprintf(sql + length, sizeof(sql) - length, ", ?%d", ++column);
    snprintf(sql + length, sizeof(sql) - length, functions ? ", name_hash(?3))" : ")");
    sqlite3_finalize(take_pointer(salvage->insert));
    free(salvage->types);
    salvage->types = column_types_of(salvage->db, table, columns);
    return salvage->types ? db_prepare(salvage->db, sql, what, &salvage->insert, salvage->err)
                          : error_no_memory(salvage->err);
}

int salvage_copy_table(struct salvage *salvage, const char *table, const char *columns)
{
    struct table_losses losses = {0};
    int code = prepare_insert(salvage, table, columns);

    if (!code)
        code = table_read(salvage->from, table, columns, copy_row, salvage, &losses);
    salvage->sum.lost_rows += losses.rows;
    salvage->sum.lost_stretches += losses.stretches;
    return code;
}

static int copy_catalog(struct salvage *salvage)
{
    static const struct {
        const char *table, *columns;
    } tables[] = {
        {"runs",
         "run_id, name, command, host, kernel, started_ns, ended_ns, exit_status, options, tool_version, "
         "recorder"},
        {"tags", "run_id, key, value"},
        {"processes",
         "process_id, run_id, pid, parent_process_id, rank, exe, argv, started_ns, ended_ns, exit_status"},
        {"threads", "thread_id, run_id, process_id, tid, label, name, started_ns, ended_ns, returns"},
        {"images", "image_id, path, build_id, kind"},
        {"functions", "function_id, image_id, name, demangled, address, size, file, line, aliases"},
        {"blind", "run_id, function_id, from_ns, to_ns, cause, calls_per_second, calls_missed"},
        {"budget_plans", "build_id, address, calls_per_second"},
        {"losses", "loss_id, run_id, thread_id, seq, ns, count, cause, calls, returns"},
        {"call_sites", "site_id, image_id, address, function_id, file, line"},
    };
    int code = 0;

    for (size_t i = 0; i < ARRAY_SIZE(tables) && !code; i++)
        code = salvage_copy_table(salvage, tables[i].table, tables[i].columns);
    return code;
}
/* ------------------------------------------------------------------------------------------ segments */

enum {
    SEGMENT_RUN,
    THREAD,
    FIRST_SEQ = SALVAGE_FIRST_SEQ,
    EVENT_COUNT = SALVAGE_EVENT_COUNT,
    FIRST_NS,
    LAST_NS,
    CODEC,
    CHECKSUM,
    DATA
};
#define SEGMENT_COLUMNS "run_id, thread_id, first_seq, event_count, first_ns, last_ns, codec, checksum, data"

/* The sites that the segment names, for invent_sites. */
static int note_sites(struct salvage *salvage, const struct segment_parts *parts)
{
    const struct section *section = &parts->sections[SECTION_SITE_DICTIONARY];
    AUTO_FREE uint32_t *sites = NULL;
    size_t count = 0;
    int code = parts->flags & SEGMENT_CALL_SITES
                   ? dictionary_read(section->data, section->size, 0, &sites, &count)
                   : 0;

    for (size_t i = 0; !code && i < count; i++)
        if (sites[i])
            code = db_run(salvage->db, what, salvage->err,
                          "INSERT OR IGNORE INTO temp.used_sites VALUES (?1)", "i", (int64_t)sites[i]);
    return code;
}

bool salvage_knows_place(struct salvage *salvage, sqlite3_stmt *row)
{
    const int64_t first_seq = sqlite3_column_int64(row, SALVAGE_FIRST_SEQ),
                  count = sqlite3_column_int64(row, SALVAGE_EVENT_COUNT);
    bool known =
        db_row_is(row, "iinn") && (uint64_t)count <= SEGMENT_MAX_EVENTS && first_seq <= INT64_MAX - count;

    salvage->unknown_lost |= !known;
    return known;
}

/* -EBADMSG: not whole, or its place is taken. */
static int check_segment(struct salvage *salvage, const struct segment_row *segment, uint32_t checksum)
{
    struct segment_parts parts = {0};
    AUTO_BYTES room = {0};
    int64_t taken = 0;
    int code = -EBADMSG;

    census_clear(&salvage->census);
    if (crc32(0, segment->payload.data, (uInt)segment->payload.size) == checksum)
        code = segment_parse(segment->payload.data, segment->payload.size, &room, &parts);
    if (!code && parts.codec != segment->codec)
        code = -EBADMSG;
    if (!code)
        code = census_take(&salvage->census, &parts, segment->first_seq, segment->event_count);
    if (!code)
        code =
            db_number(salvage->db, what, &taken, salvage->err,
                      "SELECT count(*) FROM segments WHERE thread_id = ?1 AND"
                      " first_seq < ?2 + ?3 AND first_seq + event_count > ?2",
                      "iii", segment->thread_id, (int64_t)segment->first_seq, (int64_t)segment->event_count);
    if (!code && taken)
        code = -EBADMSG;
    return code ? code : note_sites(salvage, &parts);
}

static int take_segment(void *context, sqlite3_stmt *row)
{
    struct salvage *salvage = context;
    const struct segment_row segment = {
        .run_id = sqlite3_column_int64(row, SEGMENT_RUN),
        .thread_id = sqlite3_column_int64(row, THREAD),
        .first_seq = (uint64_t)sqlite3_column_int64(row, FIRST_SEQ),
        .event_count = (uint64_t)sqlite3_column_int64(row, EVENT_COUNT),
        .first_ns = (uint64_t)sqlite3_column_int64(row, FIRST_NS),
        .last_ns = (uint64_t)sqlite3_column_int64(row, LAST_NS),
        .codec = (uint8_t)sqlite3_column_int(row, CODEC),
        .payload = {sqlite3_column_blob(row, DATA), (size_t)sqlite3_column_bytes(row, DATA)},
    };
    bool known = salvage_knows_place(salvage, row);
    int code = known && db_row_is(row, "iinnNNnnb")
                   ? check_segment(salvage, &segment, (uint32_t)sqlite3_column_int64(row, CHECKSUM))
                   : -EBADMSG;

    if (code == -EBADMSG || code == -ENOTSUP) {
        salvage->sum.lost_segments++;
        if (!known)
            return 0;
        return db_run(salvage->db, what, salvage->err, "INSERT INTO temp.lost_segments VALUES (?1, ?2, ?3)",
                      "iii", segment.thread_id, (int64_t)segment.first_seq, (int64_t)segment.event_count);
    }
    if (!code)
        code = recover_insert_segment(salvage->db, &salvage->census, &segment, salvage->err);
    return code ? code : salvage_row_written(salvage);
}

/* ------------------------------------------------------------------------------------------ journal */

enum { JOURNAL_ID, JOURNAL_RUN, JOURNAL_NS, JOURNAL_CHECKSUM, JOURNAL_DATA };
#define JOURNAL_COLUMNS "journal_id, run_id, ns, checksum, data"

static int take_journal_row(void *context, sqlite3_stmt *row)
{
    struct salvage *salvage = context;
    const uint8_t *data = sqlite3_column_blob(row, JOURNAL_DATA);
    size_t size = (size_t)sqlite3_column_bytes(row, JOURNAL_DATA);
    int64_t run_id = sqlite3_column_int64(row, JOURNAL_RUN), damaged = 0;
    int code = db_number(salvage->db, what, &damaged, salvage->err,
                         "SELECT count(*) FROM temp.cut_journals WHERE run_id = ?1", "i", run_id);

    if (code)
        return code;
    if (!damaged && db_row_is(row, "iinnb") &&
        crc32(0, data, (uInt)size) == (uint32_t)sqlite3_column_int64(row, JOURNAL_CHECKSUM))
        return copy_row(salvage, row);
    salvage->sum.lost_rows++;
    return db_run(salvage->db, what, salvage->err, "INSERT OR IGNORE INTO temp.cut_journals VALUES (?1)", "i",
                  run_id);
}

/* Behind a stretch that cannot be read no row's predecessor is known. */
static int copy_journal(struct salvage *salvage)
{
    struct table_losses losses = {.stop_at_first = true};
    int code = prepare_insert(salvage, "journal", JOURNAL_COLUMNS);

    if (!code)
        code = table_read(salvage->from, "journal", JOURNAL_COLUMNS, take_journal_row, salvage, &losses);
    salvage->sum.lost_rows += losses.rows;
    salvage->sum.lost_stretches += losses.stretches;
    if (!code && (losses.rows || losses.stretches))
        code =
            db_exec(salvage->db,
                    "INSERT OR IGNORE INTO temp.cut_journals SELECT run_id FROM runs WHERE ended_ns IS NULL",
                    what, salvage->err);
    return code;
}

/* ------------------------------------------------------------------------------------------ what is missing
 */

int salvage_execute_all(struct salvage *salvage, const char *const *statements, size_t count,
                        uint64_t *counter)
{
    for (size_t i = 0; i < count; i++) {
        int code = db_exec(salvage->db, statements[i], what, salvage->err);

        if (code)
            return code;
        *counter += (uint64_t)sqlite3_changes64(salvage->db);
    }
    return 0;
}

static int invent_runs(struct salvage *salvage)
{
    static const char *const statements[] = {
        "INSERT INTO runs (run_id, name, command, host, kernel, started_ns, options, tool_version, recorder)"
        " SELECT run_id, 'lost-' || run_id, '', '', '', 0, '', '', '' FROM"
        " (SELECT run_id FROM segments UNION SELECT run_id FROM journal"
        "  UNION SELECT run_id FROM process_segments)"
        " WHERE run_id > 0"
        " AND run_id NOT IN (SELECT run_id FROM runs)",
    };
    static const char *const unfinished[] = {
        "INSERT INTO losses (run_id, ns, cause) SELECT run_id, started_ns, 'unfinished' FROM runs r"
        " WHERE ended_ns IS NULL"
        " AND NOT EXISTS (SELECT 1 FROM losses l WHERE l.run_id = r.run_id AND cause = 'unfinished')",
    };
    uint64_t told = 0;
    int code = salvage_execute_all(salvage, statements, ARRAY_SIZE(statements), &salvage->sum.invented);

    return code ? code : salvage_execute_all(salvage, unfinished, ARRAY_SIZE(unfinished), &told);
}

static int invent_others(struct salvage *salvage)
{
    static const char *const statements[] = {
        "INSERT INTO threads (thread_id, run_id, process_id, tid, label, name, started_ns, returns)"
        " SELECT thread_id, run_id, -run_id, 0, '9999.' || thread_id, '', 0, 'inferred'"
        " FROM (SELECT DISTINCT thread_id, run_id FROM segments)"
        " WHERE thread_id NOT IN (SELECT thread_id FROM threads)",
        "INSERT INTO processes (process_id, run_id, pid, exe, argv, started_ns)"
        " SELECT process_id, min(run_id), 0, '', '', 0 FROM threads"
        " WHERE process_id NOT IN (SELECT process_id FROM processes) GROUP BY process_id",
        "INSERT INTO call_sites (site_id, image_id, address) SELECT site_id, -1, site_id FROM temp.used_sites"
        " WHERE site_id NOT IN (SELECT site_id FROM call_sites)",
        "INSERT INTO functions (function_id, image_id, name, address, size, name_hash)"
        " SELECT function_id, -1, 'lost_function_' || function_id, function_id, 0,"
        " name_hash('lost_function_' || function_id) FROM (SELECT function_id FROM segment_functions"
        " UNION SELECT function_id FROM temp.used_functions) WHERE function_id <> 4294967295"
        " AND function_id NOT IN (SELECT function_id FROM functions)",
        "INSERT INTO images (image_id, path, build_id, kind) SELECT image_id, 'lost image ' || image_id, '',"
        " 'library' FROM (SELECT image_id FROM functions UNION SELECT image_id FROM call_sites"
        " UNION SELECT image_id FROM go_programs)"
        " WHERE image_id NOT IN (SELECT image_id FROM images)",
    };
    /* What refers to something that is not there. */
    static const char *const orphans[] = {
        "DELETE FROM tags WHERE run_id NOT IN (SELECT run_id FROM runs)",
        "DELETE FROM losses WHERE run_id NOT IN (SELECT run_id FROM runs)",
        "DELETE FROM blind WHERE run_id NOT IN (SELECT run_id FROM runs)",
        "DELETE FROM threads WHERE run_id NOT IN (SELECT run_id FROM runs)",
        "DELETE FROM processes WHERE run_id NOT IN (SELECT run_id FROM runs)",
        "DELETE FROM go_wait_reasons WHERE process_id NOT IN (SELECT process_id FROM processes)",
        "DELETE FROM go_usages WHERE image_id NOT IN (SELECT image_id FROM images)",
        "DELETE FROM go_usage_cases WHERE usage_id NOT IN (SELECT usage_id FROM go_usages)",
    };
    int code = salvage_execute_all(salvage, statements, ARRAY_SIZE(statements), &salvage->sum.invented);

    return code ? code : salvage_execute_all(salvage, orphans, ARRAY_SIZE(orphans), &salvage->sum.lost_rows);
}

/* Gaps between segments, damaged segments behind the last good one, and what nobody can know. */
static int tell_losses(struct salvage *salvage, bool segments_lost)
{
    static const char *const statements[] = {
        "INSERT INTO losses (run_id, thread_id, ns, count, cause)"
        " SELECT run_id, thread_id, coalesce(first_ns, (SELECT started_ns FROM runs r"
        "  WHERE r.run_id = s.run_id)), first_seq - behind, 'damaged' FROM"
        " (SELECT run_id, thread_id, first_seq, first_ns, lag(first_seq + event_count, 1, 0)"
        "  OVER (PARTITION BY thread_id ORDER BY first_seq) AS behind FROM segments) s"
        " WHERE first_seq > behind",
        "INSERT INTO losses (run_id, thread_id, ns, count, cause)"
        " SELECT t.run_id, t.thread_id, r.started_ns, l.event_count, 'damaged' FROM temp.lost_segments l"
        " JOIN threads t USING (thread_id) JOIN runs r USING (run_id) WHERE l.first_seq >="
        "  (SELECT coalesce(max(first_seq + event_count), 0) FROM segments s"
        "   WHERE s.thread_id = l.thread_id)",
    };
    uint64_t told = 0;
    int64_t events = 0;
    int code = salvage_execute_all(salvage, statements, ARRAY_SIZE(statements), &told);

    if (!code)
        code = db_number(salvage->db, what, &events, salvage->err,
                         "SELECT CAST(total(count) AS INTEGER) FROM losses WHERE cause = 'damaged'", "");
    salvage->sum.lost_events = (uint64_t)events;
    if (!code)
        code = db_exec(salvage->db,
                       "INSERT INTO losses (run_id, ns, cause) SELECT run_id, started_ns, 'damaged' FROM"
                       " temp.cut_journals JOIN runs USING (run_id)",
                       what, salvage->err);
    return code || !segments_lost
               ? code
               : db_exec(
                     salvage->db,
                     "INSERT INTO losses (run_id, ns, cause) SELECT run_id, started_ns, 'damaged' FROM runs",
                     what, salvage->err);
}

/* ------------------------------------------------------------------------------------------ all of it */

static int recover_copied(struct salvage *salvage)
{
    int code =
        db_exec(salvage->db, "UPDATE runs SET recorder = '' WHERE ended_ns IS NULL", what, salvage->err);

    if (!code)
        code = db_exec(salvage->db, "COMMIT", what, salvage->err);
    if (!code)
        code = tracestore_recover(salvage->to, &salvage->sum.recovered, salvage->err);
    return code ? code : db_exec(salvage->db, "BEGIN", what, salvage->err);
}

static int sum_up(struct salvage *salvage)
{
    static const char *const questions[] = {
        "SELECT count(*) FROM runs",
        "SELECT count(*) FROM threads",
        "SELECT count(*) FROM segments",
        "SELECT CAST(total(event_count) AS INTEGER) FROM segments",
    };
    uint64_t *const answers[] = {&salvage->sum.runs, &salvage->sum.threads, &salvage->sum.segments,
                                 &salvage->sum.events};

    for (size_t i = 0; i < ARRAY_SIZE(questions); i++) {
        int64_t answer;
        int code = db_number(salvage->db, what, &answer, salvage->err, questions[i], "");

        if (code)
            return code;
        *answers[i] = (uint64_t)answer;
    }
    return 0;
}

static int copy_all(struct salvage *salvage)
{
    struct table_losses losses = {0};
    int code = db_exec(salvage->db,
                       "PRAGMA foreign_keys = OFF;"
                       "CREATE TEMP TABLE lost_segments (thread_id, first_seq, event_count);"
                       "CREATE TEMP TABLE used_sites (site_id INTEGER PRIMARY KEY);"
                       "CREATE TEMP TABLE used_functions (function_id INTEGER PRIMARY KEY);"
                       "CREATE TEMP TABLE cut_journals (run_id INTEGER PRIMARY KEY); BEGIN",
                       what, salvage->err);

    if (!code)
        code = copy_catalog(salvage);
    if (!code)
        code = table_read(salvage->from, "segments", SEGMENT_COLUMNS, take_segment, salvage, &losses);
    salvage->sum.lost_segments += losses.rows;
    salvage->sum.lost_stretches += losses.stretches;
    if (!code)
        code = salvage_processes_copy(salvage);
    if (!code)
        code = copy_journal(salvage);
    if (!code)
        code = invent_runs(salvage);
    if (!code)
        code = recover_copied(salvage);
    if (!code)
        code = salvage_processes_invent(salvage);
    if (!code)
        code = invent_others(salvage);
    if (!code)
        code = salvage_processes_record_losses(salvage);
    if (!code)
        code = tell_losses(salvage, losses.rows || losses.stretches || salvage->unknown_lost);
    if (!code)
        code = db_commit(salvage->db, what, salvage->err);
    return code ? code : sum_up(salvage);
}

static void remove_store(const char *path)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};

    for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
        AUTO_FREE char *file = NULL;

        if (asprintf(&file, "%s%s", path, suffixes[i]) > 0)
            unlink(file);
    }
}

int tracestore_salvage(const char *from, const char *to, struct trace_salvaged *ret_salvaged,
                       struct error *err)
{
    struct salvage salvage = {.err = err};
    int code;

    if (access(to, F_OK) == 0)
        return error_say(err, -EEXIST, "cannot salvage to %s: it exists (name a new file)", to);
    code = store_open_damaged(from, &salvage.from, err);
    if (!code)
        code = tracestore_open(to, TRACESTORE_CREATE, &salvage.to, err);
    if (!code) {
        salvage.db = salvage.to->db;
        code = copy_all(&salvage);
    }
    if (!code)
        name_index_update(salvage.db, NULL); /* the store is complete without; the next run tries again */
    sqlite3_finalize(salvage.insert);
    free(salvage.types);
    census_release(&salvage.census);
    sqlite3_close(salvage.from);
    tracestore_free(salvage.to);
    if (code && salvage.db)
        remove_store(to);
    if (!code)
        *ret_salvaged = salvage.sum;
    return code;
}
