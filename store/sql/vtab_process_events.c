/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * go_events(run_id, process_id, label, goroutine, seq, ns, kind, operation, object, function_id, other,
 * value, flags, tid): what goroutines did; sync_events(run_id, process_id, label, seq, ns, kind, phase,
 * object, other, result, site_id, position): what threads do to each other. Event by event, in the order run,
 * process, seq.
 */
#include "store/sql/vtab_process_events.h"
#include "base/error.h"
#include "store/sql/process_scan.h"
#include "store/sql/vtab_constraints.h"
#include "store/sql/vtab_table.h"
#include "store/streams/go_events.h"
#include "store/streams/sync_events.h"

struct events_cursor {
    struct vtab_cursor head;
    enum process_stream stream;
    struct process_scan scan;
};

static int events_open(enum process_stream stream, sqlite3_vtab_cursor **ret_cursor)
{
    int result = vtab_open(sizeof(struct events_cursor), ret_cursor);

    if (result == SQLITE_OK)
        ((struct events_cursor *)*ret_cursor)->stream = stream;
    return result;
}

static int events_close(sqlite3_vtab_cursor *base)
{
    struct events_cursor *cursor = (struct events_cursor *)base;

    process_scan_stop(&cursor->scan);
    sqlite3_free(cursor);
    return SQLITE_OK;
}

static int events_next(sqlite3_vtab_cursor *base)
{
    struct events_cursor *cursor = (struct events_cursor *)base;
    struct error err = {0};
    int code;

    do {
        code = cursor->scan.iter ? process_scan_next_event(&cursor->scan, &err) : 1;
        if (code != 1)
            break;
        code = process_scan_next_process(&cursor->scan, &err);
    } while (!code);
    cursor->head.row++;
    cursor->head.end = code != 0;
    return code < 0 ? vtab_fail(base->pVtab, code, &err) : SQLITE_OK;
}

static int events_filter(sqlite3_vtab_cursor *base, int index_number, const char *index_text, int argc,
                         sqlite3_value **argv)
{
    struct events_cursor *cursor = (struct events_cursor *)base;
    struct error err = {0};
    int code =
        process_scan_start(&cursor->scan, cursor->stream, vtab_db(base->pVtab), index_text, argc, argv, &err);

    cursor->head.row = 0;
    return code ? vtab_fail(base->pVtab, code, &err) : events_next(base);
}

/* ------------------------------------------------------------------------------------------ go_events */

enum {
    GO_GOROUTINE = PROCESS_SCAN_COLUMNS,
    GO_SEQ,
    GO_NS,
    GO_KIND,
    GO_OPERATION,
    GO_OBJECT,
    GO_FUNCTION,
    GO_OTHER,
    GO_VALUE,
    GO_FLAGS,
    GO_TID,
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
    static const struct vtab_column columns[] = {{"run_id", PROCESS_SCAN_RUN, TERM_RUN},
                                                 {"process_id", PROCESS_SCAN_PROCESS, TERM_PROCESS},
                                                 {"seq", GO_SEQ, TERM_SEQ},
                                                 {"ns", GO_NS, TERM_NS},
                                                 {0}};

    return vtab_best_index(info, columns);
}

static int go_events_open(sqlite3_vtab *table, sqlite3_vtab_cursor **ret_cursor)
{
    return events_open(PROCESS_STREAM_GO, ret_cursor);
}

static int go_events_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    const struct process_scan *scan = &((struct events_cursor *)base)->scan;
    const struct process_event *event = &scan->event;
    const uint64_t known[] = {
        [GO_GOROUTINE] = event->goroutine, [GO_OBJECT] = event->object, [GO_FUNCTION] = event->site,
        [GO_OTHER] = event->other,         [GO_TID] = event->tid,
    };

    switch (column) {
    case GO_SEQ:
        sqlite3_result_int64(context, (sqlite3_int64)scan->seq);
        break;
    case GO_NS:
        sqlite3_result_int64(context, (sqlite3_int64)event->ns);
        break;
    case GO_KIND:
        sqlite3_result_text(context, go_event_kind_name(event->kind), -1, SQLITE_STATIC);
        break;
    case GO_OPERATION:
        if (event->operation)
            sqlite3_result_text(context, go_op_name(event->operation), -1, SQLITE_STATIC);
        break;
    case GO_VALUE:
        sqlite3_result_int64(context, event->value);
        break;
    case GO_FLAGS:
        sqlite3_result_int(context, event->flags);
        break;
    case PROCESS_SCAN_RUN:
    case PROCESS_SCAN_PROCESS:
    case PROCESS_SCAN_LABEL:
        process_scan_result(scan, context, column, event->goroutine);
        break;
    default:
        sql_result_known(context, known[column]);
    }
    return SQLITE_OK;
}

#define go_events_close events_close
#define go_events_next events_next
#define go_events_filter events_filter
const sqlite3_module vtab_go_events_module = VTAB_MODULE(go_events);

/* ------------------------------------------------------------------------------------------ sync_events */

enum {
    SYNC_SEQ = PROCESS_SCAN_COLUMNS,
    SYNC_NS,
    SYNC_KIND,
    SYNC_PHASE,
    SYNC_OBJECT,
    SYNC_OTHER,
    SYNC_RESULT,
    SYNC_SITE,
    SYNC_POSITION
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
    static const struct vtab_column columns[] = {{"run_id", PROCESS_SCAN_RUN, TERM_RUN},
                                                 {"process_id", PROCESS_SCAN_PROCESS, TERM_PROCESS},
                                                 {"seq", SYNC_SEQ, TERM_SEQ},
                                                 {"ns", SYNC_NS, TERM_NS},
                                                 {0}};

    return vtab_best_index(info, columns);
}

static int sync_events_open(sqlite3_vtab *table, sqlite3_vtab_cursor **ret_cursor)
{
    return events_open(PROCESS_STREAM_SYNC, ret_cursor);
}

static int sync_events_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    const struct process_scan *scan = &((struct events_cursor *)base)->scan;
    const struct process_event *event = &scan->event;
    const int64_t numbers[] = {[SYNC_SEQ] = (int64_t)scan->seq,
                               [SYNC_NS] = (int64_t)event->ns,
                               [SYNC_OBJECT] = (int64_t)event->object,
                               [SYNC_OTHER] = (int64_t)event->other,
                               [SYNC_RESULT] = event->result,
                               [SYNC_SITE] = event->site,
                               [SYNC_POSITION] = (int64_t)event->position};

    if (column < PROCESS_SCAN_COLUMNS)
        process_scan_result(scan, context, column, event->thread);
    else if (column == SYNC_KIND)
        sqlite3_result_text(context, sync_event_kind_name(event->kind), -1, SQLITE_STATIC);
    else if (column == SYNC_PHASE)
        sqlite3_result_text(context, sync_phase_name(event->phase), -1, SQLITE_STATIC);
    else if ((column == SYNC_SITE && !event->site) ||
             (column == SYNC_OTHER && event->other == SYNC_UNKNOWN_THREAD))
        sqlite3_result_null(context);
    else
        sqlite3_result_int64(context, numbers[column]);
    return SQLITE_OK;
}

#define sync_events_close events_close
#define sync_events_next events_next
#define sync_events_filter events_filter
const sqlite3_module vtab_sync_events_module = VTAB_MODULE(sync_events);
