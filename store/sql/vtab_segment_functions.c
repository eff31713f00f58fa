/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* segment_functions(segment_id, function_id, calls): the packed lists of `segments` as rows. */
#include "base/error.h"
#include "store/segment/segment_counts.h"
#include "store/sql/vtab_scan.h"
#include "store/sql/vtab_table.h"

enum { SEGMENT, FUNCTION, CALLS };

/* What xBestIndex pushes down, in idxNum; the values come in this order. */
enum { BY_SEGMENT = 1, BY_FUNCTION = 2 };

struct functions_cursor {
    struct vtab_cursor head;
    struct segment_counts counts; /* prepared for `of` once `open` */
    enum counts_of of;
    bool open;
    int64_t only_function; /* 0: all */
    struct function_calls function;
};

static int functions_connect(sqlite3 *db, void *context, int argc, const char *const *argv,
                             sqlite3_vtab **ret_table, char **ret_message)
{
    return vtab_connect(
        db, "CREATE TABLE segment_functions(segment_id INTEGER, function_id INTEGER, calls INTEGER)",
        ret_table);
}

static int functions_best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
    static char *const texts[] = {"", "segment_id=?", "function_id=?", "segment_id=? function_id=?"};
    static const double rows[] = {1e5, 200, 1e3, 1}, costs[] = {1e5, 250, 5e4, 150};
    int at[2] = {-1, -1}, argument = 0;

    for (int i = 0; i < info->nConstraint; i++) {
        int column = info->aConstraint[i].iColumn;

        if (info->aConstraint[i].usable && info->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_EQ &&
            (column == SEGMENT || (column == FUNCTION && !vtab_is_list(info, i))))
            at[column] = i;
    }
    for (int column = SEGMENT; column <= FUNCTION; column++)
        if (at[column] >= 0) {
            info->idxNum |= column == SEGMENT ? BY_SEGMENT : BY_FUNCTION;
            info->aConstraintUsage[at[column]].argvIndex = ++argument;
        }
    info->idxStr = texts[info->idxNum];
    info->estimatedRows = (sqlite3_int64)rows[info->idxNum];
    info->estimatedCost = costs[info->idxNum];
    return SQLITE_OK;
}

static int functions_open(sqlite3_vtab *table, sqlite3_vtab_cursor **ret_cursor)
{
    return vtab_open(sizeof(struct functions_cursor), ret_cursor);
}

static int functions_close(sqlite3_vtab_cursor *base)
{
    struct functions_cursor *cursor = (struct functions_cursor *)base;

    segment_counts_close(&cursor->counts);
    sqlite3_free(cursor);
    return SQLITE_OK;
}

static int functions_next(sqlite3_vtab_cursor *base)
{
    struct functions_cursor *cursor = (struct functions_cursor *)base;
    struct error err = {0};
    int code;

    cursor->head.row++;
    do
        code = segment_counts_next(&cursor->counts, &cursor->function, &err);
    while (!code && cursor->only_function && cursor->function.function != cursor->only_function);
    cursor->head.end = code != 0;
    return code < 0 ? vtab_fail(base->pVtab, code, &err) : SQLITE_OK;
}

/* Prepares the statement anew when it is for others than `of`. */
static int prepare(struct functions_cursor *cursor, enum counts_of of, struct error *err)
{
    if (cursor->open && cursor->of == of)
        return 0;
    segment_counts_close(&cursor->counts);
    cursor->of = of;
    cursor->open = true;
    return segment_counts_open(&cursor->counts, vtab_db(cursor->head.base.pVtab), of, err);
}

/* SQLite tests each row again, so a value that is no integer may be left to it. */
static int functions_filter(sqlite3_vtab_cursor *base, int index_number, const char *index_text, int argc,
                            sqlite3_value **argv)
{
    struct functions_cursor *cursor = (struct functions_cursor *)base;
    const int segment_at = index_number & BY_SEGMENT ? 0 : -1;
    const int function_at = index_number & BY_FUNCTION ? segment_at + 1 : -1;
    bool one = segment_at >= 0 && sqlite3_value_type(argv[segment_at]) == SQLITE_INTEGER;
    struct error err = {0};
    int code;

    cursor->head.end = true;
    cursor->head.row = 0;
    cursor->only_function = function_at >= 0 && sqlite3_value_type(argv[function_at]) == SQLITE_INTEGER
                                ? sqlite3_value_int64(argv[function_at])
                                : 0;
    code = prepare(cursor, one ? COUNTS_OF_SEGMENT : COUNTS_OF_ALL, &err);
    if (code)
        return vtab_fail(base->pVtab, code, &err);
    if (one)
        segment_counts_select(&cursor->counts, sqlite3_value_int64(argv[segment_at]));
    else
        segment_counts_rewind(&cursor->counts);
    return functions_next(base);
}

static int functions_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    const struct functions_cursor *cursor = (struct functions_cursor *)base;

    sqlite3_result_int64(context, column == SEGMENT    ? cursor->counts.segment_id
                                  : column == FUNCTION ? cursor->function.function
                                                       : (sqlite3_int64)cursor->function.calls);
    return SQLITE_OK;
}

const sqlite3_module vtab_segment_functions_module = VTAB_MODULE(functions);
