/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/sql/go_scan.h"

#include <errno.h>

#include "store/db/store.h"
#include "store/sql/vtab_constraints.h"

static const char what[] = "cannot read the Go programs";

static const struct vtab_column columns[] = {
    {"run_id", GO_SCAN_RUN, TERM_RUN},
    {"process_id", GO_SCAN_PROCESS, TERM_PROCESS},
    {"seq", GO_SCAN_COLUMNS, TERM_SEQ},
    {"ns", GO_SCAN_COLUMNS + 1, TERM_NS},
    {0},
};
static const struct vtab_column program_columns[] = {
    {"run_id", GO_SCAN_RUN, TERM_RUN},
    {"process_id", GO_SCAN_PROCESS, TERM_PROCESS},
    {0},
};

int go_scan_best_index(sqlite3_index_info *info, bool sequence)
{
    return vtab_best_index(info, sequence ? columns : program_columns);
}

#define PROGRAMS_SQL \
    "SELECT run_id, process_id, " GO_PROCESS_LABEL("g.process_id") \
    " FROM main.go_programs g WHERE (?1 ISNULL OR run_id = ?1) AND (?2 ISNULL OR process_id = ?2)" \
    " ORDER BY run_id, process_id"

int go_scan_start(struct go_scan *scan, sqlite3 *db, const char *index_text, int argc, sqlite3_value **argv,
                  struct error *err)
{
    struct vtab_constraints constraints;
    int code;

    go_scan_stop(scan);
    scan->db = db;
    if (vtab_read_constraints(index_text, argc, argv, &constraints))
        return error_no_memory(err);
    scan->range = (struct process_range){constraints.first_seq, constraints.last_seq, constraints.from_ns,
                                         constraints.to_ns};
    vtab_constraints_release(&constraints);
    if (constraints.nothing)
        return 0;
    code = db_prepare(db, PROGRAMS_SQL, what, &scan->programs, err);
    if (!code && constraints.has_run)
        sqlite3_bind_int64(scan->programs, 1, constraints.run_id);
    if (!code && constraints.has_process)
        sqlite3_bind_int64(scan->programs, 2, constraints.process_id);
    return code;
}

static void leave_process(struct go_scan *scan)
{
    process_event_iter_free(take_pointer(scan->iter));
    free(take_pointer(scan->process));
    for (int i = 0; i < GO_WAIT_REASONS; i++)
        free(take_pointer(scan->reasons[i]));
}

void go_scan_stop(struct go_scan *scan)
{
    leave_process(scan);
    sqlite3_finalize(take_pointer(scan->programs));
}

/* ------------------------------------------------------------------------------------------ processes */

static int read_reasons(struct go_scan *scan, struct error *err)
{
    AUTO_STATEMENT *row = NULL;
    int result, code = db_prepare(scan->db,
                                  "SELECT number, name FROM main.go_wait_reasons WHERE process_id = ?1"
                                  " AND number BETWEEN 0 AND 255",
                                  what, &row, err);

    if (code)
        return code;
    db_bind(row, "i", scan->process_id);
    while ((result = db_row(row, "nt")) == SQLITE_ROW) {
        char **reason = &scan->reasons[sqlite3_column_int64(row, 0)];

        free(*reason); /* of a damaged table: it comes twice */
        *reason = db_text(row, 1);
        if (!*reason)
            return error_no_memory(err);
    }
    return result == SQLITE_DONE ? 0 : db_fail(scan->db, err, what);
}

int go_scan_next_process(struct go_scan *scan, struct error *err)
{
    int result, code;

    leave_process(scan);
    if (!scan->programs)
        return 1;
    result = db_row(scan->programs, "ii");
    if (result != SQLITE_ROW) {
        code = result == SQLITE_DONE ? 1 : db_fail(scan->db, err, what);
        sqlite3_finalize(take_pointer(scan->programs));
        return code;
    }
    scan->run_id = sqlite3_column_int64(scan->programs, 0);
    scan->process_id = sqlite3_column_int64(scan->programs, 1);
    scan->process = db_text(scan->programs, 2);
    if (!scan->process)
        return error_no_memory(err);
    code = read_reasons(scan, err);
    return code ? code
                : process_event_iter_open_db(scan->db, PROCESS_STREAM_GO, scan->process_id, &scan->range,
                                             &scan->iter, err);
}

int go_scan_next_event(struct go_scan *scan, struct error *err)
{
    int code = process_event_iter_next(scan->iter, &scan->event, err);

    if (!code)
        scan->seq = process_event_iter_seq(scan->iter);
    return code;
}

void go_scan_result(const struct go_scan *scan, sqlite3_context *context, int column, uint64_t goroutine)
{
    char *label;

    if (column == GO_SCAN_RUN)
        sqlite3_result_int64(context, scan->run_id);
    else if (column == GO_SCAN_PROCESS)
        sqlite3_result_int64(context, scan->process_id);
    else if (column == GO_SCAN_GOROUTINE)
        go_result_known(context, goroutine);
    else if (goroutine) {
        label = sqlite3_mprintf("%s.g%llu", scan->process, (unsigned long long)goroutine);
        if (label)
            sqlite3_result_text(context, label, -1, sqlite3_free);
        else
            sqlite3_result_error_nomem(context);
    }
}
