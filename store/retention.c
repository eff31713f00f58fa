/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Deleting runs and giving their space back. */
#include <errno.h>
#include <string.h>

#include "store/store.h"

static const char what[] = "cannot delete the run";

/* A live recorder has functions in the catalog that no committed segment names yet. */
static int any_recorder_alive(sqlite3 *db, bool *ret_alive, struct error *err)
{
    AUTO_STATEMENT *row = NULL;
    int result, code = db_prepare(db, "SELECT recorder FROM runs WHERE ended_ns IS NULL", what, &row, err);

    if (code)
        return code;
    *ret_alive = false;
    while ((result = sqlite3_step(row)) == SQLITE_ROW)
        *ret_alive |= recorder_alive((const char *)sqlite3_column_text(row, 0));
    return result == SQLITE_DONE ? 0 : db_fail(db, err, what);
}

/* Deletes the images, with their functions and call sites, that no run mentions any more. Functions of a
 * mentioned image stay, called or not: that they were not called is news, too. Which call sites a segment
 * names is not in the catalog, so all of them stay as long as any segment has sites (its third byte has the
 * flag). */
static int delete_unused_images(sqlite3 *db, struct error *err)
{
    bool alive = false;
    int64_t journal_rows = 0;
    int code = any_recorder_alive(db, &alive, err);

    if (!code)
        code = db_number(db, what, &journal_rows, err, "SELECT count(*) FROM journal", "");
    if (code || alive || journal_rows) /* what a journal mentions is not in the catalog */
        return code;
    return db_exec(
        db,
        "CREATE TEMP TABLE used_images AS SELECT DISTINCT image_id FROM main.functions"
        " WHERE function_id IN (SELECT function_id FROM main.segment_functions"
        " UNION SELECT function_id FROM main.blind) UNION SELECT image_id FROM main.call_sites"
        " WHERE EXISTS (SELECT 1 FROM main.segments WHERE hex(substr(data, 3, 1)) IN ('02', '03'));"
        "DELETE FROM main.call_sites WHERE image_id NOT IN (SELECT image_id FROM temp.used_images);"
        "DELETE FROM main.functions WHERE image_id NOT IN (SELECT image_id FROM temp.used_images);"
        "DELETE FROM main.images WHERE image_id NOT IN (SELECT image_id FROM temp.used_images);"
        "DROP TABLE temp.used_images",
        what, err);
}

static int check_deletable(struct tracestore *store, int64_t run_id, struct error *err)
{
    AUTO_STATEMENT *row = NULL;
    int result, code = db_prepare(store->db, "SELECT recorder, ended_ns FROM runs WHERE run_id = ?1", what,
                                  &row, err);

    if (code)
        return code;
    db_bind(row, "i", run_id);
    result = sqlite3_step(row);
    if (result == SQLITE_DONE)
        return error_say(err, -ENOENT,
                         "cannot delete run %lld in store %s: no such run (list them with 'tracectl runs')",
                         (long long)run_id, store->path);
    if (result != SQLITE_ROW)
        return db_fail(store->db, err, what);
    if (sqlite3_column_type(row, 1) == SQLITE_NULL &&
        recorder_alive((const char *)sqlite3_column_text(row, 0)))
        return error_say(err, -EBUSY,
                         "cannot delete run %lld in store %s: it is being recorded (end the recording first)",
                         (long long)run_id, store->path);
    return 0;
}

int tracestore_delete_run(struct tracestore *store, int64_t run_id, struct error *err)
{
    int code = db_begin(store->db, what, err);

    if (code)
        return code;
    code = check_deletable(store, run_id, err);
    if (!code)
        code = db_run(store->db, what, err, "DELETE FROM runs WHERE run_id = ?1", "i", run_id);
    if (!code)
        code = delete_unused_images(store->db, err);
    if (code) {
        db_rollback(store->db);
        return code;
    }
    code = db_commit(store->db, what, err);
    if (code)
        return code;
    /* The run is gone; that its space comes back at once is only desired. A reader may stand in the way. */
    sqlite3_exec(store->db, "PRAGMA incremental_vacuum", NULL, NULL, NULL);
    sqlite3_wal_checkpoint_v2(store->db, "main", SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    return 0;
}
