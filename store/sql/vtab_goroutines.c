/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * goroutines(run_id, process_id, label, goroutine, parent, created_ns, ended_ns, function_id, created_at,
 * state, since_ns, wait_reason, operation, object, site), and go_blocks(run_id, process_id, label, goroutine,
 * seq, ns, duration_ns, wait_reason, operation, object, site, woken_by): what the events of a process amount
 * to. Both follow the lives of its goroutines and give what an event has completed; at the end of the
 * sequence, what is still open.
 */
#include "base/error.h"
#include "store/db/store.h"
#include "store/sql/process_scan.h"
#include "store/sql/vtab_constraints.h"
#include "store/sql/vtab_process_events.h"
#include "store/sql/vtab_table.h"
#include "store/streams/go_lives.h"

#define WAIT_REASONS 256 /* the runtime keeps their numbers in a byte */

enum { GOROUTINE = PROCESS_SCAN_COLUMNS, LIVES_COLUMNS };

struct lives_cursor {
    struct vtab_cursor head;
    struct process_scan scan;
    char *reasons[WAIT_REASONS]; /* of the process; NULL where there is none of that number */
    struct go_lives lives;
    struct go_lives_updates updates;
    bool blocks;    /* of go_blocks */
    unsigned block; /* of the updates, which is the row */
};

static int lives_best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
    static const struct vtab_column columns[] = {
        {"run_id", PROCESS_SCAN_RUN, TERM_RUN}, {"process_id", PROCESS_SCAN_PROCESS, TERM_PROCESS}, {0}};

    return vtab_best_index(info, columns);
}

static int lives_open(bool blocks, sqlite3_vtab_cursor **ret_cursor)
{
    int result = vtab_open(sizeof(struct lives_cursor), ret_cursor);

    if (result == SQLITE_OK)
        ((struct lives_cursor *)*ret_cursor)->blocks = blocks;
    return result;
}

static void forget_reasons(struct lives_cursor *cursor)
{
    for (int i = 0; i < WAIT_REASONS; i++)
        free(take_pointer(cursor->reasons[i]));
}

static int lives_close(sqlite3_vtab_cursor *base)
{
    struct lives_cursor *cursor = (struct lives_cursor *)base;

    process_scan_stop(&cursor->scan);
    forget_reasons(cursor);
    go_lives_release(&cursor->lives);
    sqlite3_free(cursor);
    return SQLITE_OK;
}

static int read_reasons(struct lives_cursor *cursor, struct error *err)
{
    static const char what[] = "cannot read the Go programs";
    AUTO_STATEMENT *row = NULL;
    int result, code = db_prepare(cursor->scan.db,
                                  "SELECT number, name FROM main.go_wait_reasons WHERE process_id = ?1"
                                  " AND number BETWEEN 0 AND 255",
                                  what, &row, err);

    if (code)
        return code;
    db_bind(row, "i", cursor->scan.process_id);
    while ((result = db_row(row, "nt")) == SQLITE_ROW) {
        char **reason = &cursor->reasons[sqlite3_column_int64(row, 0)];

        free(*reason); /* of a damaged table: it comes twice */
        *reason = db_text(row, 1);
        if (!*reason)
            return error_no_memory(err);
    }
    return result == SQLITE_DONE ? 0 : db_fail(cursor->scan.db, err, what);
}

static int next_process(struct lives_cursor *cursor, struct error *err)
{
    int code = process_scan_next_process(&cursor->scan, err);

    forget_reasons(cursor);
    if (!code)
        code = read_reasons(cursor, err);
    for (int i = 0; i < WAIT_REASONS && !code; i++)
        cursor->lives.in_operation[i] = go_reason_in_operation(cursor->reasons[i]);
    return code;
}

/* The next update: 0, 1 at the end, <0. */
static int next_news(struct lives_cursor *cursor, struct error *err)
{
    int code = cursor->scan.iter ? process_scan_next_event(&cursor->scan, err) : 1;

    cursor->updates.blocks = 0;
    cursor->updates.has_life = false;
    cursor->block = 0;
    if (!code)
        return go_lives_event(&cursor->lives, &cursor->scan.event, cursor->scan.seq, &cursor->updates)
                   ? error_no_memory(err)
                   : 0;
    if (code < 0 || go_lives_take(&cursor->lives, &cursor->updates))
        return code < 0 ? code : 0;
    return next_process(cursor, err);
}

static int lives_next(sqlite3_vtab_cursor *base)
{
    struct lives_cursor *cursor = (struct lives_cursor *)base;
    struct error err = {0};
    int code = 0;

    if (!cursor->blocks || ++cursor->block >= cursor->updates.blocks)
        do
            code = next_news(cursor, &err);
        while (!code && !(cursor->blocks ? cursor->updates.blocks : cursor->updates.has_life));
    cursor->head.row++;
    cursor->head.end = code != 0;
    return code < 0 ? vtab_fail(base->pVtab, code, &err) : SQLITE_OK;
}

static int lives_filter(sqlite3_vtab_cursor *base, int index_number, const char *index_text, int argc,
                        sqlite3_value **argv)
{
    struct lives_cursor *cursor = (struct lives_cursor *)base;
    struct error err = {0};
    int code = process_scan_start(&cursor->scan, PROCESS_STREAM_GO, vtab_db(base->pVtab), index_text, argc,
                                  argv, &err);

    go_lives_release(&cursor->lives);
    cursor->updates.blocks = 0;
    cursor->head.row = 0;
    return code ? vtab_fail(base->pVtab, code, &err) : lives_next(base);
}

/* Gives one of the first columns. */
static void result_first(const struct lives_cursor *cursor, sqlite3_context *context, int column,
                         uint64_t goroutine)
{
    if (column == GOROUTINE)
        sql_result_known(context, goroutine);
    else
        process_scan_result(&cursor->scan, context, column, goroutine);
}

static void result_reason(const struct lives_cursor *cursor, sqlite3_context *context, int64_t number)
{
    const char *name = number >= 0 && number < WAIT_REASONS ? cursor->reasons[number] : NULL;

    if (name)
        sqlite3_result_text(context, name, -1, SQLITE_TRANSIENT);
}

/* Gives the operation, object or site, `field` 0 to 2, of an operation. */
static void result_operation(sqlite3_context *context, const struct go_life_operation *operation, int field)
{
    if (!operation->operation)
        return;
    if (field == 0)
        sqlite3_result_text(context, go_op_name(operation->operation), -1, SQLITE_STATIC);
    else
        sql_result_known(context, field == 1 ? operation->object : operation->site);
}

/* ------------------------------------------------------------------------------------------ goroutines */

enum {
    PARENT = LIVES_COLUMNS,
    CREATED_NS,
    ENDED_NS,
    FUNCTION,
    CREATED_AT,
    STATE,
    SINCE_NS,
    WAIT_REASON,
    OPERATION,
    OBJECT,
    SITE,
};

static int goroutines_connect(sqlite3 *db, void *context, int argc, const char *const *argv,
                              sqlite3_vtab **ret_table, char **ret_message)
{
    return vtab_connect(
        db,
        "CREATE TABLE goroutines(run_id INTEGER, process_id INTEGER, label TEXT, goroutine INTEGER, "
        "parent INTEGER, created_ns INTEGER, ended_ns INTEGER, function_id INTEGER, created_at INTEGER, "
        "state TEXT, since_ns INTEGER, wait_reason TEXT, operation TEXT, object INTEGER, site INTEGER)",
        ret_table);
}

static int goroutines_open(sqlite3_vtab *table, sqlite3_vtab_cursor **ret_cursor)
{
    return lives_open(false, ret_cursor);
}

static void result_state(sqlite3_context *context, const struct lives_cursor *cursor,
                         const struct go_life *life, int column)
{
    static const char *const names[] = {
        [GO_LIFE_UNKNOWN] = "unknown", [GO_LIFE_RUNNABLE] = "runnable", [GO_LIFE_RUNNING] = "running",
        [GO_LIFE_BLOCKED] = "blocked", [GO_LIFE_ENDED] = "ended",
    };

    if (column == STATE)
        sqlite3_result_text(context, names[life->state], -1, SQLITE_STATIC);
    else if (column == SINCE_NS)
        sql_result_known(context, life->since_ns);
    else if (life->state == GO_LIFE_BLOCKED)
        result_reason(cursor, context, life->block.reason);
}

static int goroutines_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    const struct lives_cursor *cursor = (struct lives_cursor *)base;
    const struct go_life *life = &cursor->updates.life;

    switch (column) {
    case PARENT:
        sql_result_known(context, life->parent);
        break;
    case CREATED_NS:
        sql_result_known(context, life->created_ns);
        break;
    case ENDED_NS:
        sql_result_known(context, life->ended_ns);
        break;
    case FUNCTION:
        sql_result_known(context, life->function);
        break;
    case CREATED_AT:
        sql_result_known(context, life->created_at);
        break;
    case STATE:
    case SINCE_NS:
    case WAIT_REASON:
        result_state(context, cursor, life, column);
        break;
    case OPERATION:
    case OBJECT:
    case SITE:
        result_operation(context, &life->outer, column - OPERATION);
        break;
    default:
        result_first(cursor, context, column, life->goroutine);
    }
    return SQLITE_OK;
}

#define goroutines_best_index lives_best_index
#define goroutines_close lives_close
#define goroutines_filter lives_filter
#define goroutines_next lives_next
const sqlite3_module vtab_goroutines_module = VTAB_MODULE(goroutines);

/* ------------------------------------------------------------------------------------------ go_blocks */

enum {
    BLOCK_SEQ = LIVES_COLUMNS,
    BLOCK_NS,
    BLOCK_DURATION,
    BLOCK_REASON,
    BLOCK_OPERATION,
    BLOCK_OBJECT,
    BLOCK_SITE,
    BLOCK_WOKEN_BY,
};

static int go_blocks_connect(sqlite3 *db, void *context, int argc, const char *const *argv,
                             sqlite3_vtab **ret_table, char **ret_message)
{
    return vtab_connect(
        db,
        "CREATE TABLE go_blocks(run_id INTEGER, process_id INTEGER, label TEXT, goroutine INTEGER, "
        "seq INTEGER, ns INTEGER, duration_ns INTEGER, wait_reason TEXT, operation TEXT, object INTEGER, "
        "site INTEGER, woken_by INTEGER)",
        ret_table);
}

static int go_blocks_open(sqlite3_vtab *table, sqlite3_vtab_cursor **ret_cursor)
{
    return lives_open(true, ret_cursor);
}

static int go_blocks_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    const struct lives_cursor *cursor = (struct lives_cursor *)base;
    const struct go_life_block *block = &cursor->updates.block[cursor->block];

    switch (column) {
    case BLOCK_SEQ:
        sqlite3_result_int64(context, (sqlite3_int64)block->seq);
        break;
    case BLOCK_NS:
        sqlite3_result_int64(context, (sqlite3_int64)block->ns);
        break;
    case BLOCK_DURATION:
        if (block->ended)
            sqlite3_result_int64(context, (sqlite3_int64)(block->end_ns - block->ns));
        break;
    case BLOCK_REASON:
        result_reason(cursor, context, block->reason);
        break;
    case BLOCK_OPERATION:
    case BLOCK_OBJECT:
    case BLOCK_SITE:
        result_operation(context, &block->operation, column - BLOCK_OPERATION);
        break;
    case BLOCK_WOKEN_BY:
        if (block->woken)
            sqlite3_result_int64(context, (sqlite3_int64)block->woken_by);
        break;
    default:
        result_first(cursor, context, column, block->goroutine);
    }
    return SQLITE_OK;
}

#define go_blocks_best_index lives_best_index
#define go_blocks_close lives_close
#define go_blocks_filter lives_filter
#define go_blocks_next lives_next
const sqlite3_module vtab_go_blocks_module = VTAB_MODULE(go_blocks);
