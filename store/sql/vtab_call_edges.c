/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * call_edges(run_id, thread_id, caller_id, function_id, calls): who called whom how often, by thread.
 *
 * Each thread's stream is read once, in memory that grows with the number of different rows only.
 */
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "base/hash_index.h"
#include "store/sql/vtab_scan.h"
#include "store/sql/vtab_table.h"

enum edges_column { EDGES_RUN, EDGES_THREAD, EDGES_CALLER, EDGES_FUNCTION, EDGES_CALLS };

static const struct vtab_column columns[] = {
    {"run_id", EDGES_RUN, TERM_RUN},
    {"thread_id", EDGES_THREAD, TERM_THREAD},
    {"function_id", EDGES_FUNCTION, TERM_FUNCTION},
    {0},
};

/* Calls of `function` by `caller` (0: none). */
struct edge {
    uint32_t caller, function;
    uint64_t calls;
};

struct edge_table {
    struct edge *edges;
    size_t count, capacity;
    struct hash_index index; /* by caller and function */
};

struct edges_cursor {
    struct vtab_cursor head;
    struct vtab_scan scan;
    struct edge_table table;
    size_t at;
};

/* ------------------------------------------------------------------------------------------ counting */

static int count_call(struct edge_table *table, uint32_t caller, uint32_t function)
{
    uint64_t hash = (uint64_t)caller << 32 | function;
    struct hash_walk walk = hash_index_walk(&table->index, hash);
    uint32_t number;

    while (hash_walk_next(&walk, &number)) {
        struct edge *edge = &table->edges[number];

        if (edge->caller == caller && edge->function == function) {
            edge->calls++;
            return 0;
        }
    }
    if (table->count == UINT32_MAX || array_reserve(&table->edges, &table->capacity, table->count + 1) ||
        hash_index_add(&table->index, hash, (uint32_t)table->count))
        return -ENOMEM;
    table->edges[table->count++] = (struct edge){caller, function, 1};
    return 0;
}

static int compare_edges(const void *left, const void *right)
{
    const struct edge *a = left, *b = right;

    if (a->caller != b->caller)
        return a->caller < b->caller ? -1 : 1;
    return a->function < b->function ? -1 : a->function > b->function;
}

/* The caller is the call that is open around the present one. */
static uint32_t caller_of(const struct vtab_scan *scan)
{
    return scan->depth > 1 ? scan->open[scan->depth - 2].function : 0;
}

static int count_event(struct edges_cursor *cursor, const struct event *event)
{
    struct vtab_scan *scan = &cursor->scan;
    uint32_t caller = 0;
    int r = 0;

    vtab_scan_follow(scan, event, &r);
    if (r < 0 || event->kind != EVENT_CALL)
        return r;
    if (!vtab_wants_function(&scan->constraints, event->function))
        return 0;
    if (scan->returns != TRACE_RETURNS_NONE)
        caller = caller_of(scan);
    return count_call(&cursor->table, caller, event->function);
}

static int count_thread(struct edges_cursor *cursor, struct error *err)
{
    struct vtab_scan *scan = &cursor->scan;
    struct event_range range = {.last_seq = UINT64_MAX, .no_sites = true};
    struct event event;
    int r;

    cursor->table.count = 0;
    hash_index_clear(&cursor->table.index);
    if (scan->constraints.has_functions)
        range.functions = &scan->constraints.functions;
    r = vtab_scan_open_events(scan, &range, err);
    while (r == 0) {
        r = event_iter_next(scan->iter, &event, err);
        if (r == 0 && count_event(cursor, &event) < 0)
            r = error_no_memory(err);
    }
    if (r > 0 && cursor->table.count)
        qsort(cursor->table.edges, cursor->table.count, sizeof(*cursor->table.edges), compare_edges);
    return r < 0 ? r : 0;
}

/* ------------------------------------------------------------------------------------------ the cursor */

static int edges_best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
    return vtab_best_index(info, columns);
}

static int edges_open(sqlite3_vtab *table, sqlite3_vtab_cursor **ret_cursor)
{
    return vtab_open(sizeof(struct edges_cursor), ret_cursor);
}

static int edges_close(sqlite3_vtab_cursor *base)
{
    struct edges_cursor *cursor = (struct edges_cursor *)base;

    vtab_scan_stop(&cursor->scan);
    free(cursor->table.edges);
    hash_index_release(&cursor->table.index);
    sqlite3_free(cursor);
    return SQLITE_OK;
}

static int edges_next(sqlite3_vtab_cursor *base)
{
    struct edges_cursor *cursor = (struct edges_cursor *)base;
    struct error err = {0};
    int r = 0;

    cursor->at++;
    cursor->head.row++;
    while (r == 0 && cursor->at >= cursor->table.count) {
        r = vtab_scan_next_thread(&cursor->scan, &err);
        if (r == 0)
            r = count_thread(cursor, &err);
        cursor->at = 0;
    }
    cursor->head.end = r != 0;
    return r < 0 ? vtab_fail(base->pVtab, r, &err) : SQLITE_OK;
}

static int edges_filter(sqlite3_vtab_cursor *base, int index_number, const char *index_text, int argc,
                        sqlite3_value **argv)
{
    struct edges_cursor *cursor = (struct edges_cursor *)base;
    struct error err = {0};
    int r;

    cursor->table.count = 0;
    cursor->at = 0;
    cursor->head.row = 0;
    r = vtab_scan_start(&cursor->scan, vtab_db(base->pVtab), index_text, argc, argv, &err);
    return r < 0 ? vtab_fail(base->pVtab, r, &err) : edges_next(base);
}

static int edges_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    const struct edges_cursor *cursor = (struct edges_cursor *)base;
    const struct edge *edge = &cursor->table.edges[cursor->at];

    switch ((enum edges_column)column) {
    case EDGES_RUN:
        sqlite3_result_int64(context, cursor->scan.run_id);
        break;
    case EDGES_THREAD:
        sqlite3_result_int64(context, cursor->scan.thread_id);
        break;
    case EDGES_CALLER:
        if (edge->caller)
            sqlite3_result_int64(context, edge->caller);
        break;
    case EDGES_FUNCTION:
        sqlite3_result_int64(context, edge->function);
        break;
    case EDGES_CALLS:
        sqlite3_result_int64(context, (sqlite3_int64)edge->calls);
        break;
    }
    return SQLITE_OK;
}

static int edges_connect(sqlite3 *db, void *context, int argc, const char *const *argv,
                         sqlite3_vtab **ret_table, char **ret_message)
{
    return vtab_connect(db,
                        "CREATE TABLE call_edges(run_id INTEGER, thread_id INTEGER, caller_id INTEGER, "
                        "function_id INTEGER, calls INTEGER)",
                        ret_table);
}

const sqlite3_module vtab_call_edges_module = VTAB_MODULE(edges);
