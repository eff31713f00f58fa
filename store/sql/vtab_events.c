/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * events(run_id, thread_id, seq, ns, ns_error, kind, function_id, depth, call_site, assumed): the streams,
 * event by event, in the order run, thread label, seq. Call sites are decoded only when a query looks at
 * them: idxNum is 1 then.
 */
#include <string.h>

#include "base/error.h"
#include "store/sql/vtab_scan.h"
#include "store/sql/vtab_table.h"

enum events_column {
    EVENTS_RUN,
    EVENTS_THREAD,
    EVENTS_SEQ,
    EVENTS_NS,
    EVENTS_NS_ERROR,
    EVENTS_KIND,
    EVENTS_FUNCTION,
    EVENTS_DEPTH,
    EVENTS_CALL_SITE,
    EVENTS_ASSUMED
};

static const struct vtab_column columns[] = {
    {"run_id", EVENTS_RUN, TERM_RUN},
    {"thread_id", EVENTS_THREAD, TERM_THREAD},
    {"seq", EVENTS_SEQ, TERM_SEQ},
    {"ns", EVENTS_NS, TERM_NS},
    {"kind", EVENTS_KIND, TERM_KIND},
    {"function_id", EVENTS_FUNCTION, TERM_FUNCTION},
    {0},
};

static uint32_t lost_id = TRACESTORE_LOST_FUNCTION;
static const struct function_set lost_function = {.ids = &lost_id, .count = 1};

struct events_cursor {
    struct vtab_cursor head;
    struct vtab_scan scan;
    struct event_range range;
    struct event event;
    bool in_thread;
};

static int events_connect(sqlite3 *db, void *context, int argc, const char *const *argv,
                          sqlite3_vtab **ret_table, char **ret_message)
{
    return vtab_connect(db,
                        "CREATE TABLE events(run_id INTEGER, thread_id INTEGER, seq INTEGER, ns INTEGER, "
                        "ns_error INTEGER, kind TEXT, function_id INTEGER, depth INTEGER, "
                        "call_site INTEGER, assumed INTEGER)",
                        ret_table);
}

/* Rows of one thread come in the order of seq. */
static bool in_order(const sqlite3_index_info *info)
{
    bool one_thread = false;

    for (int i = 0; i < info->nConstraint; i++)
        if (info->aConstraint[i].iColumn == EVENTS_THREAD && info->aConstraint[i].usable &&
            info->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_EQ)
            one_thread = true;
    for (int i = 0; one_thread && i < info->nOrderBy; i++) {
        int column = info->aOrderBy[i].iColumn;

        if (column == EVENTS_SEQ && !info->aOrderBy[i].desc)
            return true;
        if (column != EVENTS_THREAD && column != EVENTS_RUN)
            return false;
    }
    return one_thread;
}

static int events_best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
    int result;

    info->orderByConsumed = in_order(info);
    info->idxNum = vtab_column_used(info, EVENTS_CALL_SITE);
    result = vtab_best_index(info, columns);
    vtab_trust_numbers(info, columns);
    return result;
}

static int events_open(sqlite3_vtab *table, sqlite3_vtab_cursor **ret_cursor)
{
    return vtab_open(sizeof(struct events_cursor), ret_cursor);
}

static int events_close(sqlite3_vtab_cursor *base)
{
    struct events_cursor *cursor = (struct events_cursor *)base;

    vtab_scan_stop(&cursor->scan);
    sqlite3_free(cursor);
    return SQLITE_OK;
}

/* The next event of whichever thread: 0, 1 at the end of all, <0. */
static int step(struct events_cursor *cursor, struct error *err)
{
    int r;

    for (;;) {
        if (!cursor->in_thread) {
            r = vtab_scan_next_thread(&cursor->scan, err);
            if (r == 0)
                r = vtab_scan_open_events(&cursor->scan, &cursor->range, err);
            if (r != 0)
                return r;
            cursor->in_thread = true;
        }
        r = event_iter_next(cursor->scan.iter, &cursor->event, err);
        if (r <= 0)
            return r;
        cursor->in_thread = false;
    }
}

/* What can be told cheaper here than by SQLite, which would look at the columns of each event. */
static bool wanted(const struct vtab_constraints *constraints, const struct event *event)
{
    if (constraints->has_kind && event->kind != constraints->kind)
        return false;
    return vtab_wants_function(constraints, event->function);
}

static int events_next(sqlite3_vtab_cursor *base)
{
    struct events_cursor *cursor = (struct events_cursor *)base;
    struct error err; /* half a KiB that only a failure fills: to clear it cost a tenth of a scan */
    int r;

    err.message[0] = '\0';
    do
        r = step(cursor, &err);
    while (r == 0 && !wanted(&cursor->scan.constraints, &cursor->event));
    cursor->head.row++;
    cursor->head.end = r != 0;
    return r < 0 ? vtab_fail(base->pVtab, r, &err) : SQLITE_OK;
}

static struct event_range range_of(const struct vtab_constraints *constraints)
{
    struct event_range range = {.first_seq = constraints->first_seq, .last_seq = constraints->last_seq};

    if (constraints->has_ns) {
        range.from_ns = constraints->from_ns;
        range.to_ns = constraints->to_ns;
    }
    if (constraints->has_functions)
        range.functions = &constraints->functions;
    else if (constraints->has_kind && constraints->kind == EVENT_LOST)
        range.functions = &lost_function;
    return range;
}

static int events_filter(sqlite3_vtab_cursor *base, int index_number, const char *index_text, int argc,
                         sqlite3_value **argv)
{
    struct events_cursor *cursor = (struct events_cursor *)base;
    struct error err = {0};
    int r;

    cursor->in_thread = false;
    cursor->head.row = 0;
    r = vtab_scan_start(&cursor->scan, vtab_db(base->pVtab), index_text, argc, argv, &err);
    cursor->range = range_of(&cursor->scan.constraints);
    cursor->range.no_sites = !index_number;
    return r < 0 ? vtab_fail(base->pVtab, r, &err) : events_next(base);
}

static int events_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    const struct events_cursor *cursor = (struct events_cursor *)base;
    const struct event *event = &cursor->event;

    switch ((enum events_column)column) {
    case EVENTS_RUN:
        sqlite3_result_int64(context, cursor->scan.run_id);
        break;
    case EVENTS_THREAD:
        sqlite3_result_int64(context, cursor->scan.thread_id);
        break;
    case EVENTS_SEQ:
        sqlite3_result_int64(context, (sqlite3_int64)event->seq);
        break;
    case EVENTS_NS:
        if (event->ns)
            sqlite3_result_int64(context, (sqlite3_int64)event->ns);
        break;
    case EVENTS_NS_ERROR:
        if (event->ns)
            sqlite3_result_int64(context, (sqlite3_int64)event->ns_error);
        break;
    case EVENTS_KIND:
        sqlite3_result_text(context, vtab_kind_names[event->kind], -1, SQLITE_STATIC);
        break;
    case EVENTS_FUNCTION:
        if (event->kind != EVENT_LOST && event->function != TRACESTORE_NO_FUNCTION)
            sqlite3_result_int64(context, event->function);
        break;
    case EVENTS_DEPTH:
        sqlite3_result_int64(context, event->depth);
        break;
    case EVENTS_CALL_SITE:
        if (event->call_site)
            sqlite3_result_int64(context, event->call_site);
        break;
    case EVENTS_ASSUMED:
        sqlite3_result_int(context, event->assumed);
        break;
    }
    return SQLITE_OK;
}

const sqlite3_module vtab_events_module = VTAB_MODULE(events);
