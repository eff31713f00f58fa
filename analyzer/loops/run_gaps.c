/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/loops/run_gaps.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "store/db/db.h"

static inline void finalize(sqlite3_stmt **statement)
{
    sqlite3_finalize(*statement);
}

static int prepare(const struct loop_source *source, const char *sql, int64_t first,
                   sqlite3_stmt **ret_statement, struct error *err)
{
    sqlite3 *db = tracestore_db(source->store);

    if (sqlite3_prepare_v2(db, sql, -1, ret_statement, NULL) != SQLITE_OK ||
        sqlite3_bind_int64(*ret_statement, 1, first) != SQLITE_OK)
        return db_fail(db, err, "cannot read the losses of a run");
    return 0;
}

/* 1: a row, 0: no more. */
static int step(const struct loop_source *source, sqlite3_stmt *statement, const char *types,
                struct error *err)
{
    int r = db_row(statement, types);

    if (r == SQLITE_ROW || r == SQLITE_DONE)
        return r == SQLITE_ROW;
    return db_fail(tracestore_db(source->store), err, "cannot read the losses of a run");
}

static char *copy_text(sqlite3_stmt *statement, int column)
{
    const char *text = (const char *)sqlite3_column_text(statement, column);

    return strdup(text ? text : "");
}

static int read_blind(const struct loop_source *source, struct run_loops *run, struct error *err)
{
    CLEANUP(finalize) sqlite3_stmt *statement = NULL;
    int r = prepare(
        source,
        "SELECT f.name, b.cause, b.from_ns, b.to_ns FROM blind b JOIN functions f USING (function_id) "
        "WHERE b.run_id = ?1 ORDER BY f.name, b.from_ns",
        run->run_id, &statement, err);

    while (r >= 0 && (r = step(source, statement, "ttnN", err)) > 0) {
        struct blind_function *blind;

        if (array_reserve(&run->blind, &run->blind_capacity, run->blind_count + 1))
            return error_no_memory(err);
        blind = &run->blind[run->blind_count++];
        *blind =
            (struct blind_function){copy_text(statement, 0), copy_text(statement, 1),
                                    sqlite3_column_int64(statement, 2), sqlite3_column_int64(statement, 3)};
        if (!blind->name || !blind->cause)
            return error_no_memory(err);
    }
    return r;
}

static int read_losses(const struct loop_source *source, struct run_loops *run, struct error *err)
{
    CLEANUP(finalize) sqlite3_stmt *statement = NULL;
    int r = prepare(source,
                    "SELECT t.label, l.cause, l.count FROM losses l LEFT JOIN threads t USING (thread_id) "
                    "WHERE l.run_id = ?1 AND l.seq IS NULL AND l.cause <> 'unfinished' ORDER BY l.loss_id",
                    run->run_id, &statement, err);

    while (r >= 0 && (r = step(source, statement, "TtN", err)) > 0) {
        struct unplaced_loss *loss;

        if (array_reserve(&run->losses, &run->loss_capacity, run->loss_count + 1))
            return error_no_memory(err);
        loss = &run->losses[run->loss_count++];
        *loss = (struct unplaced_loss){copy_text(statement, 0), copy_text(statement, 1),
                                       (uint64_t)sqlite3_column_int64(statement, 2)};
        if (!loss->thread || !loss->cause)
            return error_no_memory(err);
        run->incomplete |= !*loss->thread;
    }
    return r;
}

int run_gaps_read(const struct loop_source *source, struct run_loops *run, struct error *err)
{
    int r;

    run->run_id = source->run->run_id;
    run->unfinished = source->run->unfinished;
    r = read_blind(source, run, err);
    return r < 0 ? r : read_losses(source, run, err);
}

void run_gaps_release(struct run_loops *run)
{
    for (size_t i = 0; i < run->blind_count; i++) {
        free(run->blind[i].name);
        free(run->blind[i].cause);
    }
    for (size_t i = 0; i < run->loss_count; i++) {
        free(run->losses[i].thread);
        free(run->losses[i].cause);
    }
    free(run->blind);
    free(run->losses);
}

void run_gaps_find(const struct loop_source *source, int64_t thread_id, uint64_t seq,
                   struct loop_gap *ret_gap)
{
    CLEANUP(finalize) sqlite3_stmt *statement = NULL;
    const char *sql = "SELECT cause, count FROM losses WHERE run_id = ?3 AND thread_id = ?1 AND seq = ?2";

    *ret_gap = (struct loop_gap){.cause = "unknown"};
    if (prepare(source, sql, thread_id, &statement, NULL) < 0)
        return;
    sqlite3_bind_int64(statement, 2, (int64_t)seq);
    sqlite3_bind_int64(statement, 3, source->run->run_id);
    if (db_row(statement, "tN") != SQLITE_ROW)
        return;
    snprintf(ret_gap->cause, sizeof(ret_gap->cause), "%s", (const char *)sqlite3_column_text(statement, 0));
    ret_gap->events = (uint64_t)sqlite3_column_int64(statement, 1);
}

bool run_gaps_has_unplaced(const struct run_loops *run, const char *label)
{
    for (size_t i = 0; i < run->loss_count; i++)
        if (!strcmp(run->losses[i].thread, label))
            return true;
    return false;
}
