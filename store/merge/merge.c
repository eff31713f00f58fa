/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Adding the runs of a store to another one: all of them, or none. */
#include <errno.h>
#include <sys/stat.h>

#include "base/error.h"
#include "store/db/name_index.h"
#include "store/merge/merge.h"

static const char what[] = "cannot merge";

DEFINE_CLEANUP(cleanup_store, struct tracestore *, tracestore_free)

int merge_damaged(struct merge *merge, const char *found)
{
    return error_say(merge->err, -EBADMSG,
                     "%s store %s: it has %s (salvage it with tracectl recover -o NEW.db)", what,
                     sqlite3_db_filename(merge->from, "main"), found);
}

/* ------------------------------------------------------------------------------------------ before */

static int check_different(const struct tracestore *to, const char *from, struct error *err)
{
    struct stat a, b;

    if (!stat(to->path, &a) && !stat(from, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino)
        return error_say(err, -EINVAL, "%s store %s into itself (name another file with -o)", what, from);
    return 0;
}

/* A run that was not ended has events in the journal, or is still getting some. */
static int check_ended(struct merge *merge, const char *path, int64_t only)
{
    AUTO_STATEMENT *row = NULL;
    int result, code = db_prepare(
                    merge->from,
                    "SELECT run_id, recorder, ended_ns FROM main.runs WHERE ?1 IN (0, run_id)"
                    " AND (ended_ns ISNULL OR run_id IN (SELECT run_id FROM main.journal)) ORDER BY run_id",
                    what, &row, merge->err);

    if (code)
        return code;
    db_bind(row, "i", only);
    result = db_row(row, "itN");
    if (result == SQLITE_DONE)
        return 0;
    if (result != SQLITE_ROW)
        return db_fail(merge->from, merge->err, what);
    if (sqlite3_column_type(row, 2) == SQLITE_NULL &&
        recorder_alive((const char *)sqlite3_column_text(row, 1)))
        return error_say(merge->err, -EBUSY,
                         "%s store %s: run %lld is being recorded (merge it when the run has ended)", what,
                         path, (long long)sqlite3_column_int64(row, 0));
    return error_say(merge->err, -EINVAL,
                     "%s store %s: run %lld was not ended (run tracectl -d %s recover first)", what, path,
                     (long long)sqlite3_column_int64(row, 0), path);
}

/* ------------------------------------------------------------------------------------------ the runs */

/* Whether the run was added before: a recorder that lives at one time on one machine begins one run at a time. It may
 * be a part of a job's run by now (merge_jobs.c). */
static int is_present(struct merge *merge, sqlite3_stmt *run, bool *ret_present)
{
    int64_t found = 0;
    int code = db_number(
        merge->to, what, &found, merge->err,
        "SELECT EXISTS (SELECT 1 FROM main.runs WHERE started_ns = ?2 AND recorder = ?1 AND name = ?4)"
        " OR EXISTS (SELECT 1 FROM main.tags WHERE value = " MERGE_PART_SQL("?3", "?1", "?2") ")",
        "titt", (const char *)sqlite3_column_text(run, 1), sqlite3_column_int64(run, 2),
        (const char *)sqlite3_column_text(run, 3), (const char *)sqlite3_column_text(run, 4));

    *ret_present = found;
    return code;
}

static void forget_run(struct merge *merge)
{
    id_map_release(&merge->ids[MERGE_PROCESS]);
    id_map_release(&merge->ids[MERGE_THREAD]);
}

static int add_run(struct merge *merge, sqlite3_stmt *run)
{
    bool present;
    int code = is_present(merge, run, &present);

    if (code)
        return code;
    if (present) {
        merge->sum.present++;
        return 0;
    }
    merge->from_run = sqlite3_column_int64(run, 0);
    code = merge_copy_run(merge);
    if (!code)
        code = merge_copy_segments(merge);
    forget_run(merge);
    merge->sum.runs++;
    return code;
}

/* `only`: the run that is added; 0: all. */
static int add_runs(struct merge *merge, int64_t only)
{
    AUTO_STATEMENT *run = NULL;
    int result = SQLITE_DONE,
        code = db_prepare(merge->from,
                          "SELECT run_id, recorder, started_ns, host, name FROM main.runs"
                          " WHERE ?1 IN (0, run_id) ORDER BY run_id",
                          what, &run, merge->err);

    if (!code)
        code = segment_inserter_open(&merge->segments, merge->to, what, merge->err);
    if (!code && !only)
        code = merge_copy_plans(merge);
    if (code)
        return code;
    db_bind(run, "i", only);
    while (!code && (result = db_row(run, "itntt")) == SQLITE_ROW)
        code = add_run(merge, run);
    return code || result == SQLITE_DONE ? code : db_fail(merge->from, merge->err, what);
}

/* Reads of one moment; writes in one transaction. */
static int add_all(struct merge *merge, const char *path, int64_t only)
{
    int code = db_exec(merge->from, "BEGIN", what, merge->err);

    if (code)
        return code;
    code = check_ended(merge, path, only);
    if (!code)
        code = db_begin(merge->to, what, merge->err);
    if (!code) {
        code = add_runs(merge, only);
        segment_inserter_close(&merge->segments);
        if (code)
            db_rollback(merge->to);
        else
            code = db_commit(merge->to, what, merge->err);
    }
    sqlite3_exec(merge->from, "COMMIT", NULL, NULL, NULL);
    return code;
}

static void release(struct merge *merge)
{
    merge_release_shared(merge);
    for (int kind = 0; kind < MERGE_IDS; kind++)
        id_map_release(&merge->ids[kind]);
    for (int kind = 0; kind < NUMBER_KINDS; kind++)
        numbering_release(&merge->numberings[kind]);
}

static int merge_store(struct tracestore *store, const char *from, int64_t only, struct trace_merged *sum,
                       struct error *err)
{
    CLEANUP(cleanup_store) struct tracestore *source = NULL;
    struct merge merge = {.to = store->db, .sum = *sum, .err = err};
    int code = check_different(store, from, err);

    if (!code)
        code = store_open(from, TRACESTORE_READ, NULL, &source, err);
    if (code)
        return code;
    merge.from = source->db;
    code = add_all(&merge, from, only);
    release(&merge);
    if (code)
        return code;
    name_index_update(store->db, NULL); /* the runs are complete without; the next one tries again */
    *sum = merge.sum;
    return 0;
}

int tracestore_merge(struct tracestore *store, const char *from, struct trace_merged *sum, struct error *err)
{
    return merge_store(store, from, 0, sum, err);
}

int tracestore_merge_run(struct tracestore *store, const char *from, int64_t run_id, struct trace_merged *sum,
                         struct error *err)
{
    return merge_store(store, from, run_id, sum, err);
}
