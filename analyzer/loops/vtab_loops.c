/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * loops(run_id, thread_id, level, seq, end_seq, ns, end_ns, iterations, length, calls, function_id, body):
 * what repeats in each thread's calls. Hidden columns, which make loops(50) and loops(50, 2) possible:
 * max_body, the longest body that is looked for, and min_repeats.
 *
 * run_id, thread_id and function_id (a thread that never calls the function has no loop that begins with it)
 * are pushed down. seq and ns are not: a stream that was cut would have other loops. Where the loops are is
 * looked up, in a second walk over the stream, only when a query uses seq, end_seq, ns or end_ns.
 */
#include "analyzer/loops/vtab_loops.h"

#include <errno.h>

#include "analyzer/loops/thread_nest.h"
#include "base/error.h"
#include "store/db/db.h"
#include "store/sql/vtab_scan.h"
#include "store/sql/vtab_table.h"

enum loops_column {
    LOOPS_RUN,
    LOOPS_THREAD,
    LOOPS_LEVEL,
    LOOPS_SEQ,
    LOOPS_END_SEQ,
    LOOPS_NS,
    LOOPS_END_NS,
    LOOPS_ITERATIONS,
    LOOPS_LENGTH,
    LOOPS_CALLS,
    LOOPS_FUNCTION,
    LOOPS_BODY,
    LOOPS_MAX_BODY,
    LOOPS_MIN_REPEATS
};

static const struct vtab_column columns[] = {
    {"run_id", LOOPS_RUN, TERM_RUN},
    {"thread_id", LOOPS_THREAD, TERM_THREAD},
    {"function_id", LOOPS_FUNCTION, TERM_FUNCTION},
    {0},
};

/* idxNum: the query looks at places; and the hidden columns whose values come last in argv. */
enum { USES_PLACES = 1, HAS_MAX_BODY = 2, HAS_MIN_REPEATS = 4 };

struct loops_cursor {
    struct vtab_cursor head;
    struct vtab_scan scan;
    struct nlr_options options;
    bool places;
    struct thread_nest nest; /* of the present thread */
    size_t at;
    sqlite3_stmt *name;      /* of a function */
    sqlite3_stmt *has_calls; /* whether a thread may call a function */
};

static int loops_connect(sqlite3 *db, void *context, int argc, const char *const *argv,
                         sqlite3_vtab **ret_table, char **ret_message)
{
    return vtab_connect(db,
                        "CREATE TABLE loops(run_id INTEGER, thread_id INTEGER, level INTEGER, seq INTEGER, "
                        "end_seq INTEGER, ns INTEGER, end_ns INTEGER, iterations INTEGER, length INTEGER, "
                        "calls INTEGER, function_id INTEGER, body TEXT, max_body INTEGER HIDDEN, "
                        "min_repeats INTEGER HIDDEN)",
                        ret_table);
}

/* Takes the constraint on a hidden column, the next of argv. *wanted says whether it was there. */
static int take_parameter(sqlite3_index_info *info, int column, int *argument, bool *wanted)
{
    *wanted = false;
    for (int i = 0; i < info->nConstraint; i++) {
        if (info->aConstraint[i].iColumn != column || info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ)
            continue;
        if (!info->aConstraint[i].usable)
            return SQLITE_CONSTRAINT;
        if (*wanted)
            continue;
        info->aConstraintUsage[i].argvIndex = ++*argument;
        *wanted = true;
    }
    return SQLITE_OK;
}

static int loops_best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
    bool has_max_body, has_min_repeats;
    int argument = 0, r = vtab_best_index(info, columns);

    for (int i = 0; i < info->nConstraint; i++)
        argument += info->aConstraintUsage[i].argvIndex > 0;
    if (r == SQLITE_OK)
        r = take_parameter(info, LOOPS_MAX_BODY, &argument, &has_max_body);
    if (r == SQLITE_OK)
        r = take_parameter(info, LOOPS_MIN_REPEATS, &argument, &has_min_repeats);
    if (r != SQLITE_OK) {
        sqlite3_free(info->idxStr);
        info->idxStr = NULL;
        info->needToFreeIdxStr = 0;
        return r;
    }
    info->idxNum = has_max_body * HAS_MAX_BODY | has_min_repeats * HAS_MIN_REPEATS;
    for (int column = LOOPS_SEQ; column <= LOOPS_END_NS; column++)
        if (vtab_column_used(info, column))
            info->idxNum |= USES_PLACES;
    return SQLITE_OK;
}

static int loops_open(sqlite3_vtab *table, sqlite3_vtab_cursor **ret_cursor)
{
    return vtab_open(sizeof(struct loops_cursor), ret_cursor);
}

static int loops_close(sqlite3_vtab_cursor *base)
{
    struct loops_cursor *cursor = (struct loops_cursor *)base;

    vtab_scan_stop(&cursor->scan);
    nest_release(&cursor->nest);
    sqlite3_finalize(cursor->name);
    sqlite3_finalize(cursor->has_calls);
    sqlite3_free(cursor);
    return SQLITE_OK;
}

/* ------------------------------------------------------------------------------------------ threads */

/* Whether the present thread may call a function. What is in the journal only is not looked at. */
static int may_call(struct loops_cursor *cursor, uint32_t function, bool *ret_may, struct error *err)
{
    static const char
        what[] = "cannot read the thread",
        sql[] =
            "SELECT EXISTS (SELECT 1 FROM main.segments s JOIN main.segment_functions f USING (segment_id)"
            " WHERE s.thread_id = ?1 AND f.function_id = ?2 AND f.calls > 0)"
            " OR EXISTS (SELECT 1 FROM main.journal WHERE run_id = ?3)";
    struct vtab_scan *scan = &cursor->scan;
    int code = 0;

    if (!cursor->has_calls)
        code = db_prepare(scan->db, sql, what, &cursor->has_calls, err);
    if (code)
        return code;
    db_bind(cursor->has_calls, "iii", scan->thread_id, (int64_t)function, scan->run_id);
    if (sqlite3_step(cursor->has_calls) != SQLITE_ROW)
        code = db_fail(scan->db, err, what);
    else
        *ret_may = sqlite3_column_int(cursor->has_calls, 0);
    sqlite3_reset(cursor->has_calls);
    return code;
}

static int may_match(struct loops_cursor *cursor, bool *ret_may, struct error *err)
{
    const struct function_set *functions = &cursor->scan.constraints.functions;
    int code = 0;

    *ret_may = !cursor->scan.constraints.has_functions;
    for (size_t i = 0; !*ret_may && !code && i < functions->count; i++)
        code = may_call(cursor, functions->ids[i], ret_may, err);
    return code;
}

static int open_stream(struct loops_cursor *cursor, struct error *err)
{
    const struct event_range range = {.last_seq = UINT64_MAX, .no_sites = true};

    event_iter_free(take_pointer(cursor->scan.iter));
    return vtab_scan_open_events(&cursor->scan, &range, err);
}

static int read_thread(struct loops_cursor *cursor, struct error *err)
{
    bool wanted;
    int r = may_match(cursor, &wanted, err);

    nest_release(&cursor->nest);
    if (r < 0 || !wanted)
        return r;
    r = open_stream(cursor, err);
    if (r == 0)
        r = nest_read(&cursor->nest, cursor->scan.iter, &cursor->options, err);
    if (r == 0 && cursor->places && cursor->nest.count) {
        r = open_stream(cursor, err);
        if (r == 0)
            r = nest_place(&cursor->nest, cursor->scan.iter, err);
    }
    return r;
}

static int loops_next(sqlite3_vtab_cursor *base)
{
    struct loops_cursor *cursor = (struct loops_cursor *)base;
    struct error err = {0};
    int r = 0;

    cursor->at++;
    cursor->head.row++;
    while (r == 0 && cursor->at >= cursor->nest.count) {
        r = vtab_scan_next_thread(&cursor->scan, &err);
        cursor->at = 0;
        if (r == 0)
            r = read_thread(cursor, &err);
    }
    cursor->head.end = r != 0;
    return r < 0 ? vtab_fail(base->pVtab, r, &err) : SQLITE_OK;
}

/* A parameter that is no number in range is 0, which nest_read refuses. */
static uint32_t parameter(sqlite3_value *value)
{
    sqlite3_int64 number = sqlite3_value_int64(value);

    return number > 0 && number <= NLR_MAX_BODY ? (uint32_t)number : 0;
}

static int loops_filter(sqlite3_vtab_cursor *base, int index_number, const char *index_text, int argc,
                        sqlite3_value **argv)
{
    struct loops_cursor *cursor = (struct loops_cursor *)base;
    struct error err = {0};
    int r;

    nest_release(&cursor->nest);
    cursor->options = (struct nlr_options){NLR_DEFAULT_BODY, NLR_STRICT_REPEATS};
    cursor->places = index_number & USES_PLACES;
    if (index_number & HAS_MIN_REPEATS)
        cursor->options.repeats = parameter(argv[--argc]);
    if (index_number & HAS_MAX_BODY)
        cursor->options.max_body = parameter(argv[--argc]);
    cursor->head.row = 0;
    r = vtab_scan_start(&cursor->scan, vtab_db(base->pVtab), index_text, argc, argv, &err);
    return r < 0 ? vtab_fail(base->pVtab, r, &err) : loops_next(base);
}

/* ------------------------------------------------------------------------------------------ rows */

static int add_name(struct loops_cursor *cursor, sqlite3_str *text, uint32_t function)
{
    int r = SQLITE_OK;

    if (!cursor->name)
        r = sqlite3_prepare_v2(cursor->scan.db,
                               "SELECT coalesce(demangled, name) FROM main.functions WHERE function_id = ?1",
                               -1, &cursor->name, NULL);
    if (r != SQLITE_OK)
        return r;
    sqlite3_bind_int64(cursor->name, 1, function);
    if (db_row(cursor->name, "t") == SQLITE_ROW)
        sqlite3_str_appendf(text, "%s", sqlite3_column_text(cursor->name, 0));
    else
        sqlite3_str_appendf(text, "%u", function);
    return sqlite3_reset(cursor->name);
}

/* "MPI_Send [compute wait]^3 MPI_Recv" */
static int add_body(struct loops_cursor *cursor, sqlite3_str *text, uint32_t body)
{
    const struct loop_table *table = &cursor->nest.table;
    const struct nlr_element *elements = loop_table_elements(table, body);
    int r = SQLITE_OK;

    for (uint32_t i = 0; i < table->bodies[body].length && r == SQLITE_OK; i++) {
        if (i)
            sqlite3_str_appendall(text, " ");
        if (elements[i].kind == NLR_SYMBOL) {
            r = add_name(cursor, text, elements[i].id);
            continue;
        }
        sqlite3_str_appendall(text, "[");
        r = add_body(cursor, text, elements[i].id);
        sqlite3_str_appendf(text, "]^%llu", (unsigned long long)elements[i].count);
    }
    return r;
}

static int result_body(struct loops_cursor *cursor, sqlite3_context *context, uint32_t body)
{
    sqlite3_str *text = sqlite3_str_new(cursor->scan.db);
    int r = add_body(cursor, text, body);

    if (r == SQLITE_OK)
        r = sqlite3_str_errcode(text);
    if (r == SQLITE_OK)
        sqlite3_result_text(context, sqlite3_str_finish(text), -1, sqlite3_free);
    else
        sqlite3_free(sqlite3_str_finish(text));
    return r;
}

/* A count that may have passed what SQLite's integers hold. */
static void result_count(sqlite3_context *context, uint64_t count)
{
    sqlite3_result_int64(context, count > INT64_MAX ? INT64_MAX : (sqlite3_int64)count);
}

static void result_ns(sqlite3_context *context, uint64_t ns)
{
    if (ns)
        sqlite3_result_int64(context, (sqlite3_int64)ns);
}

static int loops_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    struct loops_cursor *cursor = (struct loops_cursor *)base;
    const struct nest_loop *loop = &cursor->nest.loops[cursor->at];

    switch ((enum loops_column)column) {
    case LOOPS_RUN:
        sqlite3_result_int64(context, cursor->scan.run_id);
        break;
    case LOOPS_THREAD:
        sqlite3_result_int64(context, cursor->scan.thread_id);
        break;
    case LOOPS_LEVEL:
        sqlite3_result_int64(context, loop->level);
        break;
    case LOOPS_SEQ:
        result_count(context, loop->seq);
        break;
    case LOOPS_END_SEQ:
        result_count(context, loop->end_seq);
        break;
    case LOOPS_NS:
        result_ns(context, loop->ns);
        break;
    case LOOPS_END_NS:
        result_ns(context, loop->end_ns);
        break;
    case LOOPS_ITERATIONS:
        result_count(context, loop->element.count);
        break;
    case LOOPS_LENGTH:
        sqlite3_result_int64(context, cursor->nest.table.bodies[loop->element.id].length);
        break;
    case LOOPS_CALLS:
        result_count(context, loop->last_call - loop->first_call + 1);
        break;
    case LOOPS_FUNCTION:
        sqlite3_result_int64(context, nest_first_function(&cursor->nest, loop));
        break;
    case LOOPS_BODY:
        return result_body(cursor, context, loop->element.id);
    case LOOPS_MAX_BODY:
        sqlite3_result_int64(context, cursor->options.max_body);
        break;
    case LOOPS_MIN_REPEATS:
        sqlite3_result_int64(context, cursor->options.repeats);
        break;
    }
    return SQLITE_OK;
}

static const sqlite3_module loops_module = VTAB_MODULE(loops);

int loops_register_vtab(struct sqlite3 *db)
{
    return sqlite3_create_module_v2(db, "loops", &loops_module, NULL, NULL);
}
