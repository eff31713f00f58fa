/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One run for a job whose processes were recorded by recorders of their own, as when a launcher starts one for each rank.
 *
 * Ranks number the processes of such a job, so the labels of threads do not meet, and segments name functions by ids of
 * the store: the rows only change the run that they belong to.
 */
#include <errno.h>

#include "base/array.h"
#include "base/error.h"
#include "store/merge/merge.h"

static const char what[] = "cannot join the runs of a job";

/* Tags of the recorder whose values are numbers that add up. */
#define SUM_TAGS "'waited ns', 'ring bytes'"

/* SQL: how many parts the run has. Tags of single parts are "part N: KEY". */
#define PARTS_SQL(run) \
    "(SELECT count(*) FROM main.tags WHERE run_id = " run " AND key LIKE 'part %' AND key NOT LIKE '%: %')"

/* The run `part` (?2) becomes part of the run `run` (?1). */
static int move_rows(sqlite3 *db, int64_t run, int64_t part, struct error *err)
{
    static const char *const statements[] = {
        "UPDATE main.processes SET run_id = ?1 WHERE run_id = ?2",
        "UPDATE main.threads SET run_id = ?1 WHERE run_id = ?2",
        "UPDATE main.segments SET run_id = ?1 WHERE run_id = ?2",
        "UPDATE main.process_segments SET run_id = ?1 WHERE run_id = ?2",
        "UPDATE main.losses SET run_id = ?1 WHERE run_id = ?2",
        "UPDATE main.blind SET run_id = ?1 WHERE run_id = ?2",
        "UPDATE main.go_programs SET run_id = ?1 WHERE run_id = ?2",
        /* nodes and threads of stacks are numbered by run: behind those that are there */
        "INSERT INTO main.end_threads SELECT ?1, thread + (SELECT coalesce(max(thread), -1) + 1 FROM main.end_threads"
        " WHERE run_id = ?1), pid, tid, rank, label, name, state, flags, node + (SELECT coalesce(max(node), -1) + 1 FROM"
        " main.end_nodes WHERE run_id = ?1) FROM main.end_threads WHERE run_id = ?2",
        "INSERT INTO main.end_iterations SELECT ?1, node + (SELECT coalesce(max(node), -1) + 1 FROM main.end_nodes"
        " WHERE run_id = ?1), depth, finished FROM main.end_iterations WHERE run_id = ?2",
        "INSERT INTO main.end_nodes SELECT ?1, node + next, parent + next, image, build_id, function, file, line, address,"
        " entry, flags, depth FROM main.end_nodes, (SELECT coalesce(max(node), -1) + 1 AS next FROM main.end_nodes"
        " WHERE run_id = ?1) WHERE run_id = ?2",
        /* sums add up; other tags that both have stay apart where they differ */
        "UPDATE main.tags SET value = CAST(value AS INTEGER) + (SELECT CAST(t.value AS INTEGER) FROM main.tags t"
        " WHERE t.run_id = ?2 AND t.key = tags.key) WHERE run_id = ?1 AND key IN (" SUM_TAGS ")"
        " AND EXISTS (SELECT 1 FROM main.tags t WHERE t.run_id = ?2 AND t.key = tags.key)",
        "INSERT INTO main.tags SELECT ?1, CASE WHEN mine.key ISNULL THEN t.key ELSE 'part ' || " PARTS_SQL("?1")
        " || ': ' || t.key END, t.value FROM main.tags t LEFT JOIN main.tags mine ON mine.run_id = ?1 AND mine.key = t.key"
        " WHERE t.run_id = ?2 AND t.key NOT LIKE 'part %'"
        " AND (mine.key ISNULL OR (mine.value <> t.value AND t.key NOT IN (" SUM_TAGS ")))",
        "UPDATE main.runs SET started_ns = min(runs.started_ns, p.started_ns), ended_ns = max(runs.ended_ns, p.ended_ns),"
        " exit_status = CASE WHEN runs.exit_status ISNULL OR runs.exit_status <> 0 THEN runs.exit_status"
        " ELSE p.exit_status END"
        " FROM (SELECT started_ns, ended_ns, exit_status FROM main.runs WHERE run_id = ?2) p WHERE runs.run_id = ?1",
        "DELETE FROM main.runs WHERE run_id = ?2 AND ?1",
    };
    int code = 0;

    for (size_t i = 0; i < ARRAY_SIZE(statements) && !code; i++)
        code = db_run(db, what, err, statements[i], "ii", run, part);
    return code;
}

/* The run's parts become known: itself where it has none yet (`part` is `run`), or those of another one. */
static int name_part(sqlite3 *db, int64_t run, int64_t part, struct error *err)
{
    return db_run(db, what, err,
                  "INSERT INTO main.tags SELECT ?1, 'part ' || (1 + " PARTS_SQL("?1") "), " MERGE_PART_SQL("host", "recorder", "started_ns")
                  " FROM main.runs WHERE run_id = ?2 AND (?1 <> ?2 OR NOT EXISTS (SELECT 1 FROM main.tags"
                  " WHERE run_id = ?1 AND key LIKE 'part %'))",
                  "ii", run, part);
}

/* Whether both can be one run. */
static int can_join(sqlite3 *db, int64_t run, int64_t part, bool *ret_can, struct error *err)
{
    int64_t obstacles = 0;
    int code = db_number(db, what, &obstacles, err,
                         "SELECT EXISTS (SELECT 1 FROM main.threads a JOIN main.threads b ON b.run_id = ?1"
                         " AND b.label = a.label WHERE a.run_id = ?2)"
                         " OR EXISTS (SELECT 1 FROM main.sync_processes WHERE run_id IN (?1, ?2))",
                         "ii", run, part);

    *ret_can = !obstacles;
    return code;
}

#define RUNS_SQL \
    " FROM main.runs JOIN main.tags USING (run_id) WHERE key = '" TRACESTORE_JOB_TAG \
    "' AND value = ?1 AND ended_ns NOTNULL" \
    " AND run_id NOT IN (SELECT run_id FROM main.journal)"

/* The run that has the parts of `job` so far, or the first of them; 0: there is none. */
static int first_part(sqlite3 *db, const char *job, int64_t *ret_run, struct error *err)
{
    return db_number(db, what, ret_run, err,
                     "SELECT run_id" RUNS_SQL
                     " ORDER BY EXISTS (SELECT 1 FROM main.tags t WHERE t.run_id = runs.run_id"
                     " AND t.key LIKE 'part %') DESC, run_id LIMIT 1",
                     "t", job);
}

/* The part behind `after` that is not `run`; 0: none. */
static int next_part(sqlite3 *db, const char *job, int64_t run, int64_t after, int64_t *ret_run,
                     struct error *err)
{
    return db_number(db, what, ret_run, err,
                     "SELECT min(run_id)" RUNS_SQL " AND run_id > ?3 AND run_id <> ?2", "tii", job, run,
                     after);
}

static int join_part(sqlite3 *db, int64_t run, int64_t part, struct trace_joined *joined, struct error *err)
{
    bool can = false;
    int code = can_join(db, run, part, &can, err);

    joined->runs += can;
    joined->apart += !can;
    if (!code && can)
        code = name_part(db, run, part, err);
    return code || !can ? code : move_rows(db, run, part, err);
}

/* All parts of a job; joined->run_id becomes the run that has the part that it is. */
static int join_parts(sqlite3 *db, const char *job, struct trace_joined *joined, struct error *err)
{
    int64_t run = 0, part = 0;
    int code = first_part(db, job, &run, err);

    if (!code && run)
        code = name_part(db, run, run, err);
    while (!code && run) {
        uint64_t before = joined->runs;

        code = next_part(db, job, run, part, &part, err);
        if (code || !part)
            break;
        code = join_part(db, run, part, joined, err);
        if (joined->runs > before && joined->run_id == part)
            joined->run_id = run;
    }
    return code;
}

/* The job behind `after` (NULL: the first), from malloc; NULL: there is none. */
static int next_job(sqlite3 *db, const char *after, char **ret_job, struct error *err)
{
    AUTO_STATEMENT *row = NULL;
    int result, code = db_prepare(db,
                                  "SELECT value FROM main.tags WHERE key = '" TRACESTORE_JOB_TAG
                                  "' AND (?1 ISNULL OR value > ?1) ORDER BY value LIMIT 1",
                                  what, &row, err);

    *ret_job = NULL;
    if (code)
        return code;
    db_bind(row, "T", after);
    result = db_row(row, "t");
    if (result != SQLITE_ROW)
        return result == SQLITE_DONE ? 0 : db_fail(db, err, what);
    *ret_job = db_text(row, 0);
    return *ret_job ? 0 : error_no_memory(err);
}

static int join_all(sqlite3 *db, struct trace_joined *joined, struct error *err)
{
    char *job = NULL, *next;
    int code = db_exec(db,
                       "UPDATE OR IGNORE main.tags SET key = '" TRACESTORE_JOB_TAG
                       "' WHERE key = '" TRACESTORE_JOB_PART_TAG
                       "' AND run_id IN (SELECT run_id FROM main.runs WHERE ended_ns NOTNULL)",
                       what, err);

    if (!code)
        code = next_job(db, NULL, &job, err);
    while (!code && job) {
        code = join_parts(db, job, joined, err);
        next = NULL;
        if (!code)
            code = next_job(db, job, &next, err);
        free(job);
        job = next;
    }
    free(job);
    return code;
}

/* The job that the run is a part of, from malloc; NULL: of none. */
static int job_of_part(sqlite3 *db, int64_t run_id, char **ret_job, struct error *err)
{
    AUTO_STATEMENT *row = NULL;
    int result,
        code = db_prepare(
            db, "SELECT value FROM main.tags WHERE run_id = ?1 AND key = '" TRACESTORE_JOB_PART_TAG "'", what,
            &row, err);

    *ret_job = NULL;
    if (code)
        return code;
    db_bind(row, "i", run_id);
    result = db_row(row, "t");
    if (result != SQLITE_ROW)
        return result == SQLITE_DONE ? 0 : db_fail(db, err, what);
    *ret_job = db_text(row, 0);
    return *ret_job ? 0 : error_no_memory(err);
}

static int join_one(sqlite3 *db, int64_t run_id, struct trace_joined *joined, struct error *err)
{
    AUTO_FREE char *job = NULL;
    int code = job_of_part(db, run_id, &job, err);

    if (!code && job)
        code = db_run(db, what, err,
                      "UPDATE OR IGNORE main.tags SET key = '" TRACESTORE_JOB_TAG
                      "' WHERE run_id = ?1 AND key = '" TRACESTORE_JOB_PART_TAG "'",
                      "i", run_id);
    return code || !job ? code : join_parts(db, job, joined, err);
}

/* In one transaction: one run, or all for 0. */
static int join(struct tracestore *store, int64_t run_id, struct trace_joined *ret_joined, struct error *err)
{
    struct trace_joined joined = {.run_id = run_id};
    int code = db_begin(store->db, what, err);

    if (code)
        return code;
    code = run_id ? join_one(store->db, run_id, &joined, err) : join_all(store->db, &joined, err);
    if (code) {
        db_rollback(store->db);
        return code;
    }
    code = db_commit(store->db, what, err);
    if (!code)
        *ret_joined = joined;
    return code;
}

int tracestore_join_job(struct tracestore *store, int64_t run_id, struct trace_joined *ret_joined,
                        struct error *err)
{
    return join(store, run_id, ret_joined, err);
}

int tracestore_join_jobs(struct tracestore *store, struct trace_joined *ret_joined, struct error *err)
{
    return join(store, 0, ret_joined, err);
}
