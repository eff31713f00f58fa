/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * journal_functions(run_id, thread_id, function_id, calls): calls of the events that are in the journal and
 * not yet in a segment; segment_functions has the rest. The journal keeps these counts: nothing is decoded.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "store/db/db.h"
#include "store/segment/journal_counts.h"
#include "store/sql/vtab_scan.h"
#include "store/sql/vtab_table.h"

enum journal_column { JOURNAL_RUN, JOURNAL_THREAD, JOURNAL_FUNCTION, JOURNAL_CALLS };

/* Only the run saves work: the journal is read a run at a time. */
static const struct vtab_column columns[] = {
    {"run_id", JOURNAL_RUN, TERM_RUN},
    {0},
};

struct journal_cursor {
    struct vtab_cursor head;
    sqlite3_stmt *runs; /* that have a journal */
    int64_t run_id;
    struct journal_counts counts; /* of the present run */
    size_t at;
};

static int journal_connect(sqlite3 *db, void *context, int argc, const char *const *argv,
                           sqlite3_vtab **ret_table, char **ret_message)
{
    return vtab_connect(
        db,
        "CREATE TABLE journal_functions(run_id INTEGER, thread_id INTEGER, function_id INTEGER, "
        "calls INTEGER)",
        ret_table);
}

static int journal_best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
    int r = vtab_best_index(info, columns);

    /* Never more than the functions of the last few seconds. */
    info->estimatedRows = info->estimatedRows / 1000000 + 1;
    info->estimatedCost /= 1000000;
    return r;
}

static int journal_open(sqlite3_vtab *table, sqlite3_vtab_cursor **ret_cursor)
{
    return vtab_open(sizeof(struct journal_cursor), ret_cursor);
}

static int journal_close(sqlite3_vtab_cursor *base)
{
    struct journal_cursor *cursor = (struct journal_cursor *)base;

    sqlite3_finalize(cursor->runs);
    journal_counts_release(&cursor->counts);
    sqlite3_free(cursor);
    return SQLITE_OK;
}

/* 0: at a run with a journal; 1: there is no further one; <0. */
static int next_run(struct journal_cursor *cursor, struct error *err)
{
    sqlite3 *db = vtab_db(cursor->head.base.pVtab);
    int r = db_row(cursor->runs, "i");

    if (r == SQLITE_DONE)
        return 1;
    if (r != SQLITE_ROW)
        return db_fail(db, err, "cannot read the journal");
    cursor->run_id = sqlite3_column_int64(cursor->runs, 0);
    cursor->at = 0;
    return journal_counts_read(&cursor->counts, db, cursor->run_id, err);
}

static int journal_next(sqlite3_vtab_cursor *base)
{
    struct journal_cursor *cursor = (struct journal_cursor *)base;
    struct error err = {0};
    int r = 0;

    cursor->at++;
    cursor->head.row++;
    while (r == 0 && cursor->at >= cursor->counts.count)
        r = next_run(cursor, &err);
    cursor->head.end = r != 0;
    return r < 0 ? vtab_fail(base->pVtab, r, &err) : SQLITE_OK;
}

static int journal_filter(sqlite3_vtab_cursor *base, int index_number, const char *index_text, int argc,
                          sqlite3_value **argv)
{
    struct journal_cursor *cursor = (struct journal_cursor *)base;
    struct vtab_constraints constraints;
    int r;

    sqlite3_finalize(cursor->runs);
    cursor->runs = NULL;
    if (vtab_read_constraints(index_text, argc, argv, &constraints))
        return SQLITE_NOMEM;
    cursor->at = cursor->counts.count = 0;
    cursor->head.row = 0;
    cursor->head.end = constraints.nothing;
    if (constraints.nothing)
        return SQLITE_OK;
    r = sqlite3_prepare_v2(vtab_db(base->pVtab),
                           constraints.has_run ? "SELECT DISTINCT run_id FROM main.journal WHERE run_id = ?1"
                                               : "SELECT DISTINCT run_id FROM main.journal ORDER BY run_id",
                           -1, &cursor->runs, NULL);
    if (r == SQLITE_OK && constraints.has_run)
        r = sqlite3_bind_int64(cursor->runs, 1, constraints.run_id);
    return r == SQLITE_OK ? journal_next(base) : r;
}

static int journal_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    const struct journal_cursor *cursor = (struct journal_cursor *)base;
    const struct journal_count *count = &cursor->counts.counts[cursor->at];

    switch ((enum journal_column)column) {
    case JOURNAL_RUN:
        sqlite3_result_int64(context, cursor->run_id);
        break;
    case JOURNAL_THREAD:
        sqlite3_result_int64(context, count->thread_id);
        break;
    case JOURNAL_FUNCTION:
        sqlite3_result_int64(context, count->function);
        break;
    case JOURNAL_CALLS:
        sqlite3_result_int64(context, (sqlite3_int64)count->calls);
        break;
    }
    return SQLITE_OK;
}

const sqlite3_module vtab_journal_functions_module = VTAB_MODULE(journal);
