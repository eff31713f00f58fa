/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/cascade/vtab_cascade.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/cascade/recorded_run.h"
#include "analyzer/cascade/report.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "store/sql/vtab_table.h"

struct run_cursor {
    struct vtab_cursor head;
    struct recorded_run run;
    bool has_run;
};

struct cascades_cursor {
    struct vtab_cursor head;
    struct cascade_result result;
};

static struct tracestore *store_of(const sqlite3_vtab_cursor *cursor)
{
    return vtab_of(cursor->pVtab);
}

/* The columns must be given, with =; they become argv in this order. */
static int need_columns(sqlite3_vtab *table, sqlite3_index_info *info, const int *columns, int count,
                        const char *what)
{
    for (int wanted = 0; wanted < count; wanted++) {
        bool given = false, unusable = false;

        for (int i = 0; i < info->nConstraint && !given; i++) {
            if (info->aConstraint[i].iColumn != columns[wanted] ||
                info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ)
                continue;
            unusable = unusable || !info->aConstraint[i].usable;
            given = info->aConstraint[i].usable;
            if (given) {
                info->aConstraintUsage[i].argvIndex = wanted + 1;
                info->aConstraintUsage[i].omit = 1;
            }
        }
        if (given)
            continue;
        if (unusable)
            return SQLITE_CONSTRAINT;
        sqlite3_free(table->zErrMsg);
        table->zErrMsg = sqlite3_mprintf("%s", what);
        return SQLITE_ERROR;
    }
    info->estimatedCost = 1e6;
    return SQLITE_OK;
}

static void result_text(sqlite3_context *context, const char *text)
{
    if (*text)
        sqlite3_result_text(context, text, -1, SQLITE_TRANSIENT);
}

/* ------------------------------------------------------------------------------------------ one run */

static int run_best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
    static const int columns[] = {0};

    return need_columns(table, info, columns, 1, "name the run: WHERE run_id = N");
}

static int run_open(sqlite3_vtab *table, sqlite3_vtab_cursor **ret_cursor)
{
    return vtab_open(sizeof(struct run_cursor), ret_cursor);
}

static int run_close(sqlite3_vtab_cursor *base)
{
    struct run_cursor *cursor = (struct run_cursor *)base;

    recorded_run_release(&cursor->run);
    sqlite3_free(cursor);
    return SQLITE_OK;
}

/* Reads the run; one without sync events has no rows. */
static int run_filter(sqlite3_vtab_cursor *base, int index_number, const char *index_text, int argc,
                      sqlite3_value **argv)
{
    struct run_cursor *cursor = (struct run_cursor *)base;
    struct trace_parts parts = {.count = 1};
    struct error err = {0};
    int r;

    recorded_run_release(&cursor->run);
    cursor->head.row = -1;
    parts.runs[0] = sqlite3_value_int64(argv[0]);
    r = recorded_run_read(&cursor->run, store_of(base), &parts, NULL, true, &err);
    cursor->has_run = r == 0;
    if (r < 0 && r != -ENODATA)
        return vtab_fail(base->pVtab, r, &err);
    return base->pVtab->pModule->xNext(base);
}

static void result_thread(sqlite3_context *context, const struct recorded_run *run, uint32_t event)
{
    char label[64];

    cascade_trace_label(&run->trace, run->trace.events[event].thread, label, sizeof(label));
    sqlite3_result_text(context, label, -1, SQLITE_TRANSIENT);
}

/* ------------------------------------------------------------------------------------------ hb_edges */

static int hb_edges_connect(sqlite3 *db, void *store, int argc, const char *const *argv,
                            sqlite3_vtab **ret_table, char **ret_message)
{
    return vtab_connect_to(
        db, store,
        "CREATE TABLE hb_edges(run_id INTEGER, kind TEXT, from_thread TEXT, from_ns INTEGER, "
        "from_event TEXT, to_thread TEXT, to_ns INTEGER, to_event TEXT)",
        ret_table);
}

/* Edges of nodes that stand for no event are the graph's own affair. */
static int hb_edges_next(sqlite3_vtab_cursor *base)
{
    struct run_cursor *cursor = (struct run_cursor *)base;
    const struct causality *causality = &cursor->run.causality;
    const struct hb_edge *edges = NULL;
    size_t count = 0;

    if (cursor->has_run)
        edges = hb_edges(causality->graph, &count);
    do
        cursor->head.row++;
    while ((size_t)cursor->head.row < count &&
           (causality->event_of[edges[cursor->head.row].from] == TRACE_NONE ||
            causality->event_of[edges[cursor->head.row].to] == TRACE_NONE));
    cursor->head.end = (size_t)cursor->head.row >= count;
    return SQLITE_OK;
}

static int hb_edges_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    const struct run_cursor *cursor = (struct run_cursor *)base;
    const struct recorded_run *run = &cursor->run;
    size_t count;
    const struct hb_edge *edge = &hb_edges(run->causality.graph, &count)[cursor->head.row];
    uint32_t event = run->causality.event_of[column < 5 ? edge->from : edge->to];

    if (column == 0)
        sqlite3_result_int64(context, run->parts.runs[0]);
    else if (column == 1)
        result_text(context, hb_edge_name(edge->kind));
    else if (column == 2 || column == 5)
        result_thread(context, run, event);
    else if (column == 3 || column == 6)
        sqlite3_result_int64(context, (sqlite3_int64)run->trace.events[event].ns);
    else
        result_text(context, sync_event_kind_name(run->trace.events[event].kind));
    return SQLITE_OK;
}

/* ------------------------------------------------------------------------------------------
 * critical_sections */

static int critical_sections_connect(sqlite3 *db, void *store, int argc, const char *const *argv,
                                     sqlite3_vtab **ret_table, char **ret_message)
{
    return vtab_connect_to(
        db, store,
        "CREATE TABLE critical_sections(run_id INTEGER, thread TEXT, resource TEXT, lock INTEGER, "
        "shared INTEGER, tried INTEGER, ns INTEGER, end_ns INTEGER, function TEXT, file TEXT, "
        "line INTEGER)",
        ret_table);
}

static int critical_sections_next(sqlite3_vtab_cursor *base)
{
    struct run_cursor *cursor = (struct run_cursor *)base;

    cursor->head.row++;
    cursor->head.end = (size_t)cursor->head.row >= cursor->run.contention.count;
    return SQLITE_OK;
}

static int critical_sections_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    const struct run_cursor *cursor = (struct run_cursor *)base;
    const struct recorded_run *run = &cursor->run;
    const struct section *section = &run->contention.sections[cursor->head.row];
    const struct resource *resource = &run->contention.resources[section->resource];
    struct event_place place = recorded_run_place(run, section->first);

    if (column == 0)
        sqlite3_result_int64(context, run->parts.runs[0]);
    else if (column == 1)
        result_thread(context, run, section->first);
    else if (column == 2)
        result_text(context, resource->pool ? "pool" : "lock");
    else if (column == 3 && !resource->pool)
        sqlite3_result_int64(context, (sqlite3_int64)resource->address);
    else if (column == 4 || column == 5)
        sqlite3_result_int(context, column == 4 ? section->shared : !section->waits);
    else if (column == 6)
        sqlite3_result_int64(context, (sqlite3_int64)run->trace.events[section->first].ns);
    else if (column == 7 && section->ended)
        sqlite3_result_int64(context, (sqlite3_int64)run->trace.events[section->last].ns);
    else if (column == 8 || column == 9)
        result_text(context, column == 8 ? place.function : place.file);
    else if (column == 10 && place.line)
        sqlite3_result_int(context, place.line);
    return SQLITE_OK;
}

/* ------------------------------------------------------------------------------------------ cascades */

enum { CASCADES_RUNS = 7, CASCADES_SINK };

static int cascades_connect(sqlite3 *db, void *store, int argc, const char *const *argv,
                            sqlite3_vtab **ret_table, char **ret_message)
{
    return vtab_connect_to(
        db, store,
        "CREATE TABLE cascades(severity TEXT, source TEXT, step TEXT, kind TEXT, links INTEGER, "
        "chain TEXT, times INTEGER, runs TEXT HIDDEN, sink TEXT HIDDEN)",
        ret_table);
}

static int cascades_best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
    static const int columns[] = {CASCADES_RUNS, CASCADES_SINK};

    return need_columns(table, info, columns, 2, "name runs and sink: FROM cascades('1,2', 'FUNCTION')");
}

static int cascades_open(sqlite3_vtab *table, sqlite3_vtab_cursor **ret_cursor)
{
    return vtab_open(sizeof(struct cascades_cursor), ret_cursor);
}

static int cascades_close(sqlite3_vtab_cursor *base)
{
    cascade_result_release(&((struct cascades_cursor *)base)->result);
    sqlite3_free(base);
    return SQLITE_OK;
}

static int cascades_next(sqlite3_vtab_cursor *base)
{
    struct cascades_cursor *cursor = (struct cascades_cursor *)base;

    cursor->head.row++;
    cursor->head.end = (size_t)cursor->head.row >= cursor->result.count;
    return SQLITE_OK;
}

/* "1" or "1+2"; `end` is behind it, at `text` when it is neither. */
static bool parse_parts(const char *text, char **ret_end, struct trace_parts *ret_parts)
{
    const char *at = text;

    while (ret_parts->count < TRACE_MOST_PARTS) {
        int64_t run_id = strtoll(at, ret_end, 10);

        if (*ret_end == at)
            break;
        ret_parts->runs[ret_parts->count++] = run_id;
        if (**ret_end != '+')
            return true;
        at = *ret_end + 1;
    }
    *ret_end = (char *)text;
    return false;
}

static int cascades_filter(sqlite3_vtab_cursor *base, int index_number, const char *index_text, int argc,
                           sqlite3_value **argv)
{
    static const struct cascade_options options = {{SEARCH_MUST_HOPS, true}, true, true, true};
    struct cascades_cursor *cursor = (struct cascades_cursor *)base;
    const char *runs = (const char *)sqlite3_value_text(argv[0]),
               *sink = (const char *)sqlite3_value_text(argv[1]);
    struct cascade_source sources[GROWTH_MOST_RUNS];
    struct error err = {0};
    size_t count = 0;
    char *end;
    int r;

    for (; runs && *runs && count < GROWTH_MOST_RUNS; runs = end + (*end == ',')) {
        sources[count++] = (struct cascade_source){.store = store_of(base)};
        if (!parse_parts(runs, &end, &sources[count - 1].parts))
            break;
    }
    cascade_result_release(&cursor->result);
    cursor->head.row = -1;
    r = runs && !*runs && sink && count
            ? cascades_find(sources, count, sink, &options, &cursor->result, &err)
            : error_say(&err, -EINVAL, "not a comma-separated list of run numbers, or too many");
    return r < 0 ? vtab_fail(base->pVtab, r, &err) : cascades_next(base);
}

/* "A waits for the lock that B holds; C waits for ..." */
static int result_chain(sqlite3_context *context, const struct cascade_report *report)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return SQLITE_NOMEM;
    for (size_t i = 0; i < report->count; i++) {
        fputs(i ? "; " : "", out);
        cascade_link_sentence(out, &report->links[i]);
    }
    if (fclose(out) == 0)
        result_text(context, text);
    free(text);
    return SQLITE_OK;
}

static int cascades_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    const struct cascades_cursor *cursor = (struct cascades_cursor *)base;
    const struct cascade_report *report = &cursor->result.reports[cursor->head.row];

    if (column == 0)
        result_text(context, cascade_severity_name(report->severity));
    else if (column == 1 || column == 2)
        result_text(context, column == 1 ? report->source.function : report->step);
    else if (column == 3)
        result_text(context, loop_kind_name(report->growth->kind));
    else if (column == 4)
        sqlite3_result_int64(context, (sqlite3_int64)report->count);
    else if (column == 5)
        return result_chain(context, report);
    else if (column == 6)
        sqlite3_result_int64(context, (sqlite3_int64)report->times);
    else if (column == CASCADES_SINK)
        result_text(context, report->sink.function);
    return SQLITE_OK;
}

/* ------------------------------------------------------------------------------------------ registering */

/* A table about one run; they differ in their rows. */
#define RUN_MODULE(table) \
    { \
        .xConnect = table##_connect, .xBestIndex = run_best_index, .xDisconnect = vtab_disconnect, \
        .xOpen = run_open, .xClose = run_close, .xFilter = run_filter, .xNext = table##_next, \
        .xEof = vtab_eof, .xColumn = table##_column, .xRowid = vtab_rowid, \
    }

static const sqlite3_module hb_edges_module = RUN_MODULE(hb_edges),
                            critical_sections_module = RUN_MODULE(critical_sections),
                            cascades_module = VTAB_MODULE(cascades);

int cascade_register_vtabs(struct tracestore *store)
{
    struct sqlite3 *db = tracestore_db(store);
    int r = sqlite3_create_module_v2(db, "hb_edges", &hb_edges_module, store, NULL);

    if (r == SQLITE_OK)
        r = sqlite3_create_module_v2(db, "critical_sections", &critical_sections_module, store, NULL);
    return r == SQLITE_OK ? sqlite3_create_module_v2(db, "cascades", &cascades_module, store, NULL) : r;
}
