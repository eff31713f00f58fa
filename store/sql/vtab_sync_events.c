/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sync_events(run_id, process_id, label, seq, ns, kind, phase, object, other, result, site_id, position):
 * what threads do to each other, event by event, in the order run, process, seq.
 */
#include <errno.h>

#include "store/db/store.h"
#include "store/sql/vtab_constraints.h"
#include "store/sql/vtab_table.h"
#include "store/streams/go_tables.h"
#include "store/streams/sync_tables.h"

static const char what[] = "cannot read synchronisation events";

enum { RUN, PROCESS, LABEL, SEQ, NS, KIND, PHASE, OBJECT, OTHER, RESULT, SITE, POSITION };

static const struct vtab_column columns[] = {
    {"run_id", RUN, TERM_RUN},
    {"process_id", PROCESS, TERM_PROCESS},
    {"seq", SEQ, TERM_SEQ},
    {"ns", NS, TERM_NS},
    {0},
};

struct events_cursor {
    struct vtab_cursor head;
    sqlite3 *db;
    struct process_range range;
    sqlite3_stmt *processes; /* NULL: there are no further ones */
    struct process_event_iter *iter;
    int64_t run_id, process_id;
    char *process; /* its number, P of P.T */
    struct process_event event;
};

static int sync_events_connect(sqlite3 *db, void *context, int argc, const char *const *argv,
                               sqlite3_vtab **ret_table, char **ret_message)
{
    return vtab_connect(db,
                        "CREATE TABLE sync_events(run_id INTEGER, process_id INTEGER, label TEXT, "
                        "seq INTEGER, ns INTEGER, kind TEXT, phase TEXT, object INTEGER, other INTEGER, "
                        "result INTEGER, site_id INTEGER, position INTEGER)",
                        ret_table);
}

static int sync_events_best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
    return vtab_best_index(info, columns);
}

static int sync_events_open(sqlite3_vtab *table, sqlite3_vtab_cursor **ret_cursor)
{
    return vtab_open(sizeof(struct events_cursor), ret_cursor);
}

static void leave_process(struct events_cursor *cursor)
{
    process_event_iter_free(take_pointer(cursor->iter));
    free(take_pointer(cursor->process));
}

static void stop(struct events_cursor *cursor)
{
    leave_process(cursor);
    sqlite3_finalize(take_pointer(cursor->processes));
}

static int sync_events_close(sqlite3_vtab_cursor *base)
{
    struct events_cursor *cursor = (struct events_cursor *)base;

    stop(cursor);
    sqlite3_free(cursor);
    return SQLITE_OK;
}

/* 0: at the next process, before its events; 1: there is none. */
static int next_process(struct events_cursor *cursor, struct error *err)
{
    int result;

    leave_process(cursor);
    if (!cursor->processes)
        return 1;
    result = db_row(cursor->processes, "ii");
    if (result != SQLITE_ROW) {
        sqlite3_finalize(take_pointer(cursor->processes));
        return result == SQLITE_DONE ? 1 : db_fail(cursor->db, err, what);
    }
    cursor->run_id = sqlite3_column_int64(cursor->processes, 0);
    cursor->process_id = sqlite3_column_int64(cursor->processes, 1);
    cursor->process = db_text(cursor->processes, 2);
    return cursor->process ? process_event_iter_open_db(cursor->db, PROCESS_STREAM_SYNC, cursor->process_id,
                                                        &cursor->range, &cursor->iter, err)
                           : error_no_memory(err);
}

static int sync_events_next(sqlite3_vtab_cursor *base)
{
    struct events_cursor *cursor = (struct events_cursor *)base;
    struct error err = {0};
    int code;

    do {
        code = cursor->iter ? process_event_iter_next(cursor->iter, &cursor->event, &err) : 1;
        if (code != 1)
            break;
        code = next_process(cursor, &err);
    } while (!code);
    cursor->head.row++;
    cursor->head.end = code != 0;
    return code < 0 ? vtab_fail(base->pVtab, code, &err) : SQLITE_OK;
}

#define PROCESSES_SQL \
    "SELECT run_id, process_id, " GO_PROCESS_LABEL("s.process_id") \
    " FROM main.sync_processes s WHERE (?1 ISNULL OR run_id = ?1) AND (?2 ISNULL OR process_id = ?2)" \
    " ORDER BY run_id, process_id"

static int start(struct events_cursor *cursor, const char *index_text, int argc, sqlite3_value **argv,
                 struct error *err)
{
    struct vtab_constraints constraints;
    int code;

    stop(cursor);
    if (vtab_read_constraints(index_text, argc, argv, &constraints))
        return error_no_memory(err);
    cursor->range = (struct process_range){constraints.first_seq, constraints.last_seq, constraints.from_ns,
                                           constraints.to_ns};
    vtab_constraints_release(&constraints);
    if (constraints.nothing)
        return 0;
    code = db_prepare(cursor->db, PROCESSES_SQL, what, &cursor->processes, err);
    if (!code && constraints.has_run)
        sqlite3_bind_int64(cursor->processes, 1, constraints.run_id);
    if (!code && constraints.has_process)
        sqlite3_bind_int64(cursor->processes, 2, constraints.process_id);
    return code;
}

static int sync_events_filter(sqlite3_vtab_cursor *base, int index_number, const char *index_text, int argc,
                              sqlite3_value **argv)
{
    struct events_cursor *cursor = (struct events_cursor *)base;
    struct error err = {0};
    int code;

    cursor->db = vtab_db(base->pVtab);
    cursor->head.row = 0;
    code = start(cursor, index_text, argc, argv, &err);
    return code ? vtab_fail(base->pVtab, code, &err) : sync_events_next(base);
}

static void result_label(sqlite3_context *context, const struct events_cursor *cursor)
{
    char *label = sqlite3_mprintf("%s.%llu", cursor->process, (unsigned long long)cursor->event.thread);

    if (label)
        sqlite3_result_text(context, label, -1, sqlite3_free);
    else
        sqlite3_result_error_nomem(context);
}

static int sync_events_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    const struct events_cursor *cursor = (const struct events_cursor *)base;
    const struct process_event *event = &cursor->event;
    const int64_t numbers[] = {
        [RUN] = cursor->run_id,
        [PROCESS] = cursor->process_id,
        [SEQ] = (int64_t)process_event_iter_seq(cursor->iter),
        [NS] = (int64_t)event->ns,
        [OBJECT] = (int64_t)event->object,
        [OTHER] = (int64_t)event->other,
        [RESULT] = event->result,
        [SITE] = event->site,
        [POSITION] = (int64_t)event->position,
    };

    if (column == LABEL)
        result_label(context, cursor);
    else if (column == KIND)
        sqlite3_result_text(context, sync_event_kind_name(event->kind), -1, SQLITE_STATIC);
    else if (column == PHASE)
        sqlite3_result_text(context, sync_phase_name(event->phase), -1, SQLITE_STATIC);
    else if ((column == SITE && !event->site) || (column == OTHER && event->other == SYNC_NOBODY))
        sqlite3_result_null(context);
    else
        sqlite3_result_int64(context, numbers[column]);
    return SQLITE_OK;
}

const sqlite3_module vtab_sync_events_module = VTAB_MODULE(sync_events);
