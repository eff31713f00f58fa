/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Closing runs whose recorder was killed: what their journal holds becomes segments, and they end at their
 * last flush. Their loss 'unfinished' stays, for what came after that is not known and never will be.
 *
 * A journal row that is damaged takes with it, for each thread, what it and the rows behind it hold; the
 * threads keep what stands before. A loss 'damaged' of unknown size says so.
 */
#include <errno.h>
#include <string.h>
#include <zlib.h>

#include "base/error.h"
#include "store/db/full_disk.h"
#include "store/db/name_index.h"
#include "store/repair/recover.h"
#include "store/writer/window.h"
#include "store/writer/writer.h"

static const char what[] = "cannot recover the run";

/* ------------------------------------------------------------------------------------------ one thread */

int recover_insert_segment(sqlite3 *db, const struct census *functions, const struct segment_row *segment,
                           struct error *err)
{
    AUTO_SEGMENT_INSERTER inserter = {0};
    AUTO_FREE struct function_calls *list = calloc(functions->count + 1, sizeof(*list));
    struct segment_row row = *segment;
    int code = list ? segment_inserter_open(&inserter, db, what, err) : error_no_memory(err);

    if (code)
        return code;
    census_list(functions, list);
    row.functions = list;
    row.function_count = functions->count;
    return segment_insert(&inserter, &row, what, err);
}

struct recovering {
    sqlite3 *db;
    int64_t run_id;
    struct trace_recovered *recovered;
    struct error *err;
};

static int insert_loss(const struct recovering *recovering, int64_t thread_id, int64_t seq)
{
    return db_run(
        recovering->db, what, recovering->err,
        "INSERT INTO losses (run_id, thread_id, seq, ns, cause) SELECT ?1, ?2, ?3, max(ns), 'damaged'"
        " FROM (SELECT ns FROM losses WHERE run_id = ?1 AND cause = 'unfinished'"
        " UNION ALL SELECT started_ns FROM runs WHERE run_id = ?1)",
        "izn", recovering->run_id, thread_id, seq);
}

/* The thread's open segment becomes a row of `segments`. */
static int fold_tail(void *context, int64_t thread_id, const struct journal_tail *tail)
{
    struct recovering *recovering = context;
    struct segment_parts parts = journal_tail_parts(tail);
    AUTO_BYTES payload = {0};
    AUTO_CENSUS census = {0};
    struct segment_row segment = {
        .run_id = recovering->run_id,
        .thread_id = thread_id,
        .first_seq = tail->first_seq,
        .event_count = tail->event_count,
        .first_ns = tail->first_ns,
        .last_ns = tail->until_ns,
        .codec = tail->codec,
    };
    int code = census_take(&census, &parts, tail->first_seq, tail->event_count);

    if (!code)
        code = segment_seal(&parts, &payload);
    if (code == -EBADMSG || code == -ENOTSUP) {
        recovering->recovered->damaged_tails++;
        return insert_loss(recovering, thread_id, -1);
    }
    if (code)
        return error_no_memory(recovering->err);
    segment.payload = (struct section){payload.data, payload.size};
    recovering->recovered->events += tail->event_count;
    recovering->recovered->segments++;
    return recover_insert_segment(recovering->db, &census, &segment, recovering->err);
}

/* ------------------------------------------------------------------------------------------ one run */

/* The threads' tails as far as the rows of the journal can be read. */
static int fold_readable(struct recovering *recovering)
{
    AUTO_STATEMENT *row = NULL;
    int result, code = db_prepare(recovering->db,
                                  "SELECT thread_id, (SELECT max(first_seq + event_count) FROM segments s"
                                  " WHERE s.thread_id = t.thread_id) FROM threads t WHERE run_id = ?1",
                                  what, &row, recovering->err);

    if (code)
        return code;
    db_bind(row, "i", recovering->run_id);
    while (!code && (result = db_row(row, "iN")) == SQLITE_ROW) {
        struct journal_tail tail = {0};
        int64_t thread_id = sqlite3_column_int64(row, 0);

        code = journal_read_tail(recovering->db, thread_id, (uint64_t)sqlite3_column_int64(row, 1), &tail,
                                 recovering->err);
        if (!code || code == -EBADMSG || code == -ENOTSUP)
            code = tail.event_count ? fold_tail(recovering, thread_id, &tail) : 0;
        journal_tail_release(&tail);
    }
    if (!code && result != SQLITE_DONE)
        code = db_fail(recovering->db, recovering->err, what);
    recovering->recovered->damaged_tails++;
    return code ? code : insert_loss(recovering, 0, -1);
}

static int recover_run(struct recovering *recovering)
{
    int code =
        journal_visit_tails(recovering->db, recovering->run_id, fold_tail, recovering, recovering->err);

    if (code == -EBADMSG || code == -ENOTSUP)
        code = fold_readable(recovering);
    if (!code)
        code = db_run(recovering->db, what, recovering->err, "DELETE FROM journal WHERE run_id = ?1", "i",
                      recovering->run_id);
    return code ? code : store_end_cut_run(recovering->db, recovering->run_id, recovering->err);
}

static int recover_at_once(sqlite3 *db, int64_t run_id, struct trace_recovered *recovered, struct error *err)
{
    struct trace_recovered sum = *recovered;
    struct recovering recovering = {.db = db, .run_id = run_id, .recovered = &sum, .err = err};
    int code = db_begin(db, what, err);

    if (code)
        return code;
    code = recover_run(&recovering);
    if (code) {
        db_rollback(db);
        return code;
    }
    code = db_commit(db, what, err);
    if (code)
        return code;
    sum.runs++;
    *recovered = sum;
    return 0;
}

/* Folds the journal of a run into segments and ends the run, in a transaction of its own. Adds to
 * `recovered`. */
static int recover_one_run(sqlite3 *db, int64_t run_id, struct trace_recovered *recovered, struct error *err)
{
    int code = recover_at_once(db, run_id, recovered, err);
    sigset_t signals;

    if (code != -ENOSPC || full_disk_begin(db, &signals))
        return code;
    code = recover_at_once(db, run_id, recovered, err);
    full_disk_end(db, &signals);
    return code;
}

/* ------------------------------------------------------------------------------------------ all runs */

/* The first run behind `after` that nobody records and that was not ended in order; 0: none. */
static int next_cut_run(sqlite3 *db, int64_t after, int64_t *ret_run, struct error *err)
{
    AUTO_STATEMENT *row = NULL;
    int result, code = db_prepare(db,
                                  "SELECT run_id, recorder, ended_ns FROM runs WHERE run_id > ?1 AND"
                                  " (ended_ns IS NULL OR run_id IN (SELECT run_id FROM journal))"
                                  " ORDER BY run_id",
                                  what, &row, err);

    if (code)
        return code;
    db_bind(row, "i", after);
    *ret_run = 0;
    while ((result = db_row(row, "itN")) == SQLITE_ROW) {
        if (sqlite3_column_type(row, 2) == SQLITE_NULL &&
            recorder_alive((const char *)sqlite3_column_text(row, 1)))
            continue;
        *ret_run = sqlite3_column_int64(row, 0);
        return 0;
    }
    return result == SQLITE_DONE ? 0 : db_fail(db, err, what);
}

int tracestore_recover(struct tracestore *store, struct trace_recovered *ret_recovered, struct error *err)
{
    struct trace_recovered recovered = {0};
    int64_t run_id = 0;
    int code = next_cut_run(store->db, 0, &run_id, err);

    while (!code && run_id) {
        code = recover_one_run(store->db, run_id, &recovered, err);
        if (!code)
            code = next_cut_run(store->db, run_id, &run_id, err);
    }
    if (!code && recovered.runs)
        name_index_update(store->db, NULL); /* the runs are complete without; the next one tries again */
    if (!code)
        code = window_recover(store->path, store, &recovered.windows, err);
    if (!code)
        *ret_recovered = recovered;
    return code;
}
