/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/sql/process_scan.h"

#include <errno.h>

#include "base/error.h"
#include "store/db/store.h"
#include "store/sql/vtab_constraints.h"
#include "store/streams/process_streams.h"

static const char what[] = "cannot read the processes that have events";

/* With %s: the table of the stream's processes. */
#define PROCESSES_SQL \
    "SELECT run_id, process_id, " PROCESS_LABEL_SQL("s.process_id") \
    " FROM main.%s s WHERE (?1 ISNULL OR run_id = ?1) AND (?2 ISNULL OR process_id = ?2)" \
    " ORDER BY run_id, process_id"

static int find_processes(struct process_scan *scan, const struct vtab_constraints *constraints,
                          struct error *err)
{
    char sql[sizeof(PROCESSES_SQL) + 32];
    int code;

    snprintf(sql, sizeof(sql), PROCESSES_SQL, process_stream_traits(scan->stream)->processes);
    code = db_prepare(scan->db, sql, what, &scan->processes, err);
    if (!code && constraints->has_run)
        sqlite3_bind_int64(scan->processes, 1, constraints->run_id);
    if (!code && constraints->has_process)
        sqlite3_bind_int64(scan->processes, 2, constraints->process_id);
    return code;
}

int process_scan_start(struct process_scan *scan, enum process_stream stream, sqlite3 *db,
                       const char *index_text, int argc, sqlite3_value **argv, struct error *err)
{
    struct vtab_constraints constraints;

    process_scan_stop(scan);
    scan->db = db;
    scan->stream = stream;
    if (vtab_read_constraints(index_text, argc, argv, &constraints))
        return error_no_memory(err);
    scan->range = (struct process_range){constraints.first_seq, constraints.last_seq, constraints.from_ns,
                                         constraints.to_ns};
    vtab_constraints_release(&constraints);
    return constraints.nothing ? 0 : find_processes(scan, &constraints, err);
}

static void leave_process(struct process_scan *scan)
{
    process_event_iter_free(take_pointer(scan->iter));
    free(take_pointer(scan->process));
}

void process_scan_stop(struct process_scan *scan)
{
    leave_process(scan);
    sqlite3_finalize(take_pointer(scan->processes));
}

int process_scan_next_process(struct process_scan *scan, struct error *err)
{
    int result, code;

    leave_process(scan);
    if (!scan->processes)
        return 1;
    result = db_row(scan->processes, "ii");
    if (result != SQLITE_ROW) {
        code = result == SQLITE_DONE ? 1 : db_fail(scan->db, err, what);
        sqlite3_finalize(take_pointer(scan->processes));
        return code;
    }
    scan->run_id = sqlite3_column_int64(scan->processes, 0);
    scan->process_id = sqlite3_column_int64(scan->processes, 1);
    scan->process = db_text(scan->processes, 2);
    return scan->process ? process_event_iter_open_db(scan->db, scan->stream, scan->process_id, &scan->range,
                                                      &scan->iter, err)
                         : error_no_memory(err);
}

int process_scan_next_event(struct process_scan *scan, struct error *err)
{
    int code = process_event_iter_next(scan->iter, &scan->event, err);

    if (!code)
        scan->seq = process_event_iter_seq(scan->iter);
    return code;
}

static void result_label(const struct process_scan *scan, sqlite3_context *context, uint64_t actor)
{
    bool go = scan->stream == PROCESS_STREAM_GO;
    char *label;

    if (go && !actor)
        return;
    label = sqlite3_mprintf("%s.%s%llu", scan->process, go ? "g" : "", (unsigned long long)actor);
    if (label)
        sqlite3_result_text(context, label, -1, sqlite3_free);
    else
        sqlite3_result_error_nomem(context);
}

void process_scan_result(const struct process_scan *scan, sqlite3_context *context, int column,
                         uint64_t actor)
{
    if (column == PROCESS_SCAN_RUN)
        sqlite3_result_int64(context, scan->run_id);
    else if (column == PROCESS_SCAN_PROCESS)
        sqlite3_result_int64(context, scan->process_id);
    else
        result_label(scan, context, actor);
}
