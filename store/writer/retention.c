/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Deleting runs and giving their space back: one run that somebody names, or the oldest ones that a
 * retention does not keep.
 *
 * Retention works in steps of a few milliseconds, so that a recorder can take one between two looks at its
 * ring, and other writers get their turn. A run that is too big for one step loses its youngest segments
 * first: what is left of it is a run that ends early, and its loss 'deleted in part' says so. The next step,
 * whoever takes it, continues with that run.
 */
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/error.h"
#include "store/db/full_disk.h"
#include "store/db/name_index.h"
#include "store/db/reserve.h"
#include "store/db/space.h"
#include "store/db/store.h"
#include "store/streams/go_functions.h"

/* A step: of about 4 MiB of payload, and as much of the file. With the disk full there is little room for the
 * log, so a step is smaller. */
#define STEP_SEGMENTS 64
#define STEP_SEGMENTS_FULL 8
#define STEP_PAGES 1024
#define STEP_PAGES_FULL 32

static const char what[] = "cannot delete the run";

/* A live recorder has functions in the catalog that no committed segment names yet. */
static int any_recorder_alive(sqlite3 *db, bool *ret_alive, struct error *err)
{
    AUTO_STATEMENT *row = NULL;
    int result, code = db_prepare(db, "SELECT recorder FROM runs WHERE ended_ns IS NULL", what, &row, err);

    if (code)
        return code;
    *ret_alive = false;
    while ((result = db_row(row, "t")) == SQLITE_ROW)
        *ret_alive |= recorder_alive((const char *)sqlite3_column_text(row, 0));
    return result == SQLITE_DONE ? 0 : db_fail(db, err, what);
}

/* Adds the images that Go programs and the events of goroutines name to the used ones. */
static int add_go_images(sqlite3 *db, struct error *err)
{
    AUTO_CENSUS functions = {0};
    AUTO_STATEMENT *row = NULL;
    int code = go_functions_take(db, 0, &functions, err);

    if (!code)
        code = db_exec(db, "INSERT INTO temp.used_images SELECT image_id FROM main.go_programs", what, err);
    if (!code)
        code = db_prepare(
            db, "INSERT INTO temp.used_images SELECT image_id FROM main.functions WHERE function_id = ?1",
            what, &row, err);
    for (size_t i = 0; i < functions.table_size && !code; i++) {
        if (!functions.table[i].function)
            continue;
        db_bind(row, "i", (int64_t)functions.table[i].function);
        code = db_step(db, row, what, err);
    }
    return code;
}

/* Which images some run mentions, as temp.used_images. */
static int find_used_images(sqlite3 *db, struct error *err)
{
    int code =
        db_exec(db,
                "CREATE TEMP TABLE used_images AS SELECT DISTINCT image_id FROM main.functions"
                " WHERE function_id IN (SELECT function_id FROM main.segment_functions"
                " UNION SELECT function_id FROM main.blind) UNION SELECT image_id FROM main.call_sites"
                " WHERE EXISTS (SELECT 1 FROM main.segments WHERE instr('2367ABEF', substr(hex(substr(data, "
                "3, 1)), 2))) OR EXISTS (SELECT 1 FROM main.process_segments WHERE stream = 2)",
                what, err);

    return code ? code : add_go_images(db, err);
}

static int drop_used_images(sqlite3 *db, struct error *err)
{
    return db_exec(db, "DROP TABLE IF EXISTS temp.used_images", what, err);
}

/* Deletes the images, with their functions and call sites, that no run mentions any more. Functions of a
 * mentioned image stay, called or not: that they were not called is news, too. Which call sites a segment
 * names is not in the catalog, so all of them stay as long as any segment has sites (flag 2 of its third
 * byte, or one of synchronisation events). And everything stays when the list of some segment's functions is
 * damaged. */
static int delete_unused_images(sqlite3 *db, struct error *err)
{
    bool alive = false;
    int64_t journal_rows = 0;
    int code = any_recorder_alive(db, &alive, err);

    if (!code)
        code = db_number(db, what, &journal_rows, err, "SELECT count(*) FROM journal", "");
    if (code || alive || journal_rows) /* what a journal mentions is not in the catalog */
        return code;
    code = find_used_images(db, err);
    if (code == -EBADMSG)
        return drop_used_images(db, err);
    if (!code)
        code = db_exec(
            db, "DELETE FROM main.call_sites WHERE image_id NOT IN (SELECT image_id FROM temp.used_images)",
            what, err);
    if (!code)
        code = name_index_before_delete(db, err);
    if (!code)
        code = db_exec(
            db,
            "DELETE FROM main.functions WHERE image_id NOT IN (SELECT image_id FROM temp.used_images);"
            "DELETE FROM main.images WHERE image_id NOT IN (SELECT image_id FROM temp.used_images)",
            what, err);
    if (!code)
        code = drop_used_images(db, err);
    return code ? code : name_index_after_delete(db, err);
}

/* ------------------------------------------------------------------------------------------ one run */

static int check_deletable(struct tracestore *store, int64_t run_id, struct error *err)
{
    AUTO_STATEMENT *row = NULL;
    int result, code = db_prepare(store->db, "SELECT recorder, ended_ns FROM runs WHERE run_id = ?1", what,
                                  &row, err);

    if (code)
        return code;
    db_bind(row, "i", run_id);
    result = db_row(row, "tN");
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

/* Ends a transaction: with a commit when `code` is not negative. Returns `code`, or why it cannot. */
static int end_transaction(sqlite3 *db, int code, struct error *err)
{
    int committed;

    if (code < 0) {
        db_rollback(db);
        return code;
    }
    committed = db_commit(db, what, err);
    return committed ? committed : code;
}

/* All of the run in one transaction. */
static int delete_whole(struct tracestore *store, int64_t run_id, struct error *err)
{
    int code = db_begin(store->db, what, err);

    if (code)
        return code;
    code = check_deletable(store, run_id, err);
    if (!code)
        code = db_run(store->db, what, err, "DELETE FROM runs WHERE run_id = ?1", "i", run_id);
    if (!code)
        code = delete_unused_images(store->db, err);
    return end_transaction(store->db, code, err);
}

/* ------------------------------------------------------------------------------------------ which run */

/* The columns of CANDIDATES_SQL: runs that a step continues with first, then from the oldest on. */
enum { RUN_ID, RECORDER, ENDED, END_NS, BEGUN };
#define CANDIDATES_SQL \
    "SELECT r.run_id, r.recorder, r.ended_ns, coalesce(r.ended_ns, (SELECT max(l.ns) FROM losses l" \
    " WHERE l.run_id = r.run_id AND l.cause = 'unfinished'), r.started_ns), EXISTS (SELECT 1 FROM losses l" \
    " WHERE l.run_id = r.run_id AND l.cause = 'deleted in part') AS begun" \
    " FROM runs r ORDER BY begun DESC, r.run_id"

/* Whether the store as a whole has more than it may keep. */
static int too_much(sqlite3 *db, const struct trace_retention *keep, bool *ret_too_much, struct error *err)
{
    struct space space = {0};
    int64_t runs = 0;
    int code = keep->bytes ? space_measure(db, &space, err) : 0;

    if (!code && keep->runs)
        code = db_number(db, what, &runs, err, "SELECT count(*) FROM runs", "");
    if (!code)
        *ret_too_much =
            (keep->bytes && space.used > keep->bytes) || (keep->runs && (uint64_t)runs > keep->runs);
    return code;
}

static bool too_old(const struct trace_retention *keep, uint64_t end_ns, uint64_t now_ns)
{
    return keep->age_ns && now_ns > keep->age_ns && end_ns < now_ns - keep->age_ns;
}

/* The run to delete now, 0: none. `oldest`: the oldest there is. */
static int choose_run(sqlite3 *db, const struct trace_retention *keep, uint64_t now_ns, bool oldest,
                      int64_t *ret_run, struct error *err)
{
    AUTO_STATEMENT *row = NULL;
    int result, code = oldest ? 0 : too_much(db, keep, &oldest, err);

    if (!code)
        code = db_prepare(db, CANDIDATES_SQL, what, &row, err);
    if (code)
        return code;
    while ((result = db_row(row, "itNni")) == SQLITE_ROW) {
        if (sqlite3_column_int64(row, RUN_ID) == keep->spare_run)
            continue;
        if (sqlite3_column_type(row, ENDED) == SQLITE_NULL &&
            recorder_alive((const char *)sqlite3_column_text(row, RECORDER)))
            continue;
        if (!oldest && !sqlite3_column_int(row, BEGUN) &&
            !too_old(keep, (uint64_t)sqlite3_column_int64(row, END_NS), now_ns))
            continue;
        *ret_run = sqlite3_column_int64(row, RUN_ID);
        return 0;
    }
    *ret_run = 0;
    return result == SQLITE_DONE ? 0 : db_fail(db, err, what);
}

/* ------------------------------------------------------------------------------------------ steps */

/* Deletes up to `most` of the run's youngest segments, those of calls last; gives their number. */
static int delete_segments(sqlite3 *db, int64_t run_id, int64_t most, int64_t *ret_gone, struct error *err)
{
    static const char *const statements[] = {
        "DELETE FROM process_segments WHERE segment_id IN (SELECT segment_id FROM process_segments"
        " WHERE run_id = ?1 ORDER BY segment_id DESC LIMIT ?2)",
        "DELETE FROM segments WHERE segment_id IN (SELECT segment_id FROM segments"
        " WHERE run_id = ?1 ORDER BY segment_id DESC LIMIT ?2)",
    };
    int64_t gone = 0;

    for (size_t i = 0; i < ARRAY_SIZE(statements) && gone < most; i++) {
        int code = db_run(db, what, err, statements[i], "ii", run_id, most - gone);

        if (code)
            return code;
        gone += sqlite3_changes64(db);
    }
    *ret_gone = gone;
    return 0;
}

/* Deletes the run's youngest segments, or the run when these were the last. 1: the run is gone. */
static int delete_part(sqlite3 *db, int64_t run_id, int64_t segments, uint64_t now_ns, struct error *err)
{
    int64_t begun = 0, gone = 0;
    int code = delete_segments(db, run_id, segments, &gone, err);

    if (code)
        return code;
    if (gone < segments) {
        code = db_run(db, what, err, "DELETE FROM runs WHERE run_id = ?1", "i", run_id);
        return code ? code : sqlite3_changes64(db) > 0; /* another process may have been faster */
    }
    /* The journal is younger than what has gone. */
    code = db_run(db, what, err, "DELETE FROM journal WHERE run_id = ?1", "i", run_id);
    if (!code)
        code = db_number(db, what, &begun, err,
                         "SELECT count(*) FROM losses WHERE run_id = ?1 AND cause = 'deleted in part'", "i",
                         run_id);
    return code || begun ? code
                         : db_run(db, what, err,
                                  "INSERT INTO losses (run_id, ns, cause) VALUES (?1, ?2, 'deleted in part')",
                                  "ii", run_id, (int64_t)now_ns);
}

/* 1: a part or all of a run has gone; 0: there is none to delete. */
static int delete_step(sqlite3 *db, const struct trace_retention *keep, uint64_t now_ns, bool full,
                       struct trace_retained *retained, struct error *err)
{
    int64_t run_id = 0;
    int gone, code = choose_run(db, keep, now_ns, full, &run_id, err);

    if (code || !run_id)
        return code;
    code = db_begin(db, what, err);
    if (code)
        return code;
    gone = delete_part(db, run_id, full ? STEP_SEGMENTS_FULL : STEP_SEGMENTS, now_ns, err);
    gone = end_transaction(db, gone, err);
    if (gone < 0)
        return gone;
    retained->space_due = true;
    retained->images_due |= gone > 0;
    retained->runs += (uint64_t)gone;
    return 1;
}

static int images_step(sqlite3 *db, struct error *err)
{
    int code = db_begin(db, what, err);

    return code ? code : end_transaction(db, delete_unused_images(db, err), err);
}

/* ------------------------------------------------------------------------------------------ a run by name */

/* The run is gone; that its space comes back at once is only desired. */
static void give_all_back(sqlite3 *db)
{
    while (space_give_back(db, STEP_PAGES, NULL) > 0)
        ;
    space_empty_log(db);
}

/* A part of the run or, when it has gone, the images that it alone had. 1: there is no more of it; 0. */
static int run_step(struct tracestore *store, int64_t run_id, bool gone, struct error *err)
{
    int r = db_begin(store->db, what, err);

    if (r)
        return r;
    if (gone)
        r = delete_unused_images(store->db, err);
    else
        r = check_deletable(store, run_id, err);
    if (!r && !gone)
        r = delete_part(store->db, run_id, STEP_SEGMENTS_FULL, clock_ns(CLOCK_REALTIME), err);
    r = end_transaction(store->db, r, err);
    if (r < 0)
        return r;
    give_all_back(store->db);
    return r || gone;
}

static int run_step_without_log(struct tracestore *store, int64_t run_id, bool gone, struct error *err)
{
    sigset_t signals;
    int r;

    if (full_disk_begin(store->db, &signals))
        return -ENOSPC; /* as the error line says already */
    r = run_step(store, run_id, gone, err);
    full_disk_end(store->db, &signals);
    return r;
}

static int delete_in_steps(struct tracestore *store, int64_t run_id, struct error *err)
{
    int r = 0;

    for (int gone = 0; gone < 2 && r >= 0; gone += r > 0) {
        r = run_step(store, run_id, gone, err);
        if (r == -ENOSPC)
            r = run_step_without_log(store, run_id, gone, err);
    }
    return r < 0 ? r : 0;
}

int tracestore_delete_run(struct tracestore *store, int64_t run_id, struct error *err)
{
    int code = delete_whole(store, run_id, err);

    if (code == -ENOSPC)
        return delete_in_steps(store, run_id, err);
    if (!code)
        give_all_back(store->db);
    return code;
}

/* A writer frees pages too: those of its journal when a run ends. They are cut off where the file is longer
 * than it may be for them. */
static int find_free_pages(sqlite3 *db, const struct trace_retention *keep, bool *ret_due, struct error *err)
{
    struct space space = {0};
    int code = keep->bytes ? space_measure(db, &space, err) : 0;

    if (!code)
        *ret_due = space.file > keep->bytes && space.used < space.file;
    return code;
}

static int retain_step(struct tracestore *store, const struct trace_retention *keep, uint64_t now_ns,
                       struct trace_retained *retained, struct error *err)
{
    int code = delete_step(store->db, keep, now_ns, false, retained, err);

    if (code)
        return code;
    if (retained->images_due) {
        code = images_step(store->db, err);
        retained->images_due = code < 0;
        return code ? code : 1;
    }
    if (!retained->space_due)
        code = find_free_pages(store->db, keep, &retained->space_due, err);
    if (code || !retained->space_due)
        return code;
    code = space_give_back(store->db, STEP_PAGES, err);
    retained->space_due = code != 0;
    if (!code)
        space_empty_log(store->db);
    return code;
}

int tracestore_retain(struct tracestore *store, const struct trace_retention *keep, uint64_t now_ns,
                      struct trace_retained *retained, struct error *err)
{
    int code = retain_step(store, keep, now_ns, retained, err);
    sigset_t signals;

    /* A recorder has room set aside for this case, and tracestore_make_room. */
    if (code != -ENOSPC || store->reserves[RESERVE_LAST] >= 0 || full_disk_begin(store->db, &signals))
        return code;
    code = retain_step(store, keep, now_ns, retained, err);
    while (code > 0 && space_give_back(store->db, STEP_PAGES, NULL) > 0)
        ;
    full_disk_end(store->db, &signals);
    return code;
}

int tracestore_make_room(struct tracestore *store, uint64_t now_ns, struct trace_retained *retained,
                         struct error *err)
{
    const struct trace_retention nothing = {0};
    uint64_t runs = retained->runs;
    int code;

    reserve_use_for_log(store);
    do
        code = delete_step(store->db, &nothing, now_ns, true, retained, err);
    while (code > 0 && retained->runs == runs);
    if (code <= 0)
        return code;
    /* What the log has of pages behind the file's new end needs no room in the file any more. */
    for (int64_t pages = STEP_PAGES_FULL; code > 0; pages += pages < STEP_PAGES ? pages : 0) {
        code = space_give_back(store->db, pages, err);
        space_empty_log(store->db);
    }
    return code && code != -ENOSPC ? code : 1; /* free pages are room, too */
}
