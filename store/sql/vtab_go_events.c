/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * go_events(run_id, process_id, label, goroutine, seq, ns, kind, operation, object, function_id, other,
 * value, flags, tid): what goroutines did, event by event, in the order run, process, seq.
 */
#include "store/sql/go_scan.h"
#include "store/sql/vtab_table.h"

enum {
    SEQ = GO_SCAN_COLUMNS,
    NS,
    KIND,
    OPERATION,
    OBJECT,
    FUNCTION,
    OTHER,
    VALUE,
    FLAGS,
    TID,
};

struct events_cursor {
    struct vtab_cursor head;
    struct go_scan scan;
};

static int go_events_connect(sqlite3 *db, void *context, int argc, const char *const *argv,
                             sqlite3_vtab **ret_table, char **ret_message)
{
    return vtab_connect(db,
                        "CREATE TABLE go_events(run_id INTEGER, process_id INTEGER, label TEXT, "
                        "goroutine INTEGER, seq INTEGER, ns INTEGER, kind TEXT, operation TEXT, "
                        "object INTEGER, function_id INTEGER, other INTEGER, value INTEGER, flags INTEGER, "
                        "tid INTEGER)",
                        ret_table);
}

static int go_events_best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
    return go_scan_best_index(info, true);
}

static int go_events_open(sqlite3_vtab *table, sqlite3_vtab_cursor **ret_cursor)
{
    return vtab_open(sizeof(struct events_cursor), ret_cursor);
}

static int go_events_close(sqlite3_vtab_cursor *base)
{
    struct events_cursor *cursor = (struct events_cursor *)base;

    go_scan_stop(&cursor->scan);
    sqlite3_free(cursor);
    return SQLITE_OK;
}

static int go_events_next(sqlite3_vtab_cursor *base)
{
    struct events_cursor *cursor = (struct events_cursor *)base;
    struct error err = {0};
    int code = 1;

    for (;;) {
        if (cursor->scan.iter)
            code = go_scan_next_event(&cursor->scan, &err);
        if (code != 1)
            break;
        code = go_scan_next_process(&cursor->scan, &err);
        if (code)
            break;
    }
    cursor->head.row++;
    cursor->head.end = code != 0;
    return code < 0 ? vtab_fail(base->pVtab, code, &err) : SQLITE_OK;
}

static int go_events_filter(sqlite3_vtab_cursor *base, int index_number, const char *index_text, int argc,
                            sqlite3_value **argv)
{
    struct events_cursor *cursor = (struct events_cursor *)base;
    struct error err = {0};
    int code = go_scan_start(&cursor->scan, vtab_db(base->pVtab), index_text, argc, argv, &err);

    cursor->head.row = 0;
    return code ? vtab_fail(base->pVtab, code, &err) : go_events_next(base);
}

static int go_events_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    const struct go_scan *scan = &((struct events_cursor *)base)->scan;
    const struct process_event *event = &scan->event;

    switch (column) {
    case SEQ:
        sqlite3_result_int64(context, (sqlite3_int64)scan->seq);
        break;
    case NS:
        sqlite3_result_int64(context, (sqlite3_int64)event->ns);
        break;
    case KIND:
        sqlite3_result_text(context, go_event_kind_name(event->kind), -1, SQLITE_STATIC);
        break;
    case OPERATION:
        if (event->operation)
            sqlite3_result_text(context, go_op_name(event->operation), -1, SQLITE_STATIC);
        break;
    case OBJECT:
        go_result_known(context, event->object);
        break;
    case FUNCTION:
        go_result_known(context, event->site);
        break;
    case OTHER:
        go_result_known(context, event->other);
        break;
    case VALUE:
        sqlite3_result_int64(context, event->value);
        break;
    case FLAGS:
        sqlite3_result_int(context, event->flags);
        break;
    case TID:
        go_result_known(context, event->tid);
        break;
    default:
        go_scan_result(scan, context, column, event->goroutine);
    }
    return SQLITE_OK;
}

const sqlite3_module vtab_go_events_module = VTAB_MODULE(go_events);
