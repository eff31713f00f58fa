/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/streams/go_functions.h"

#include <errno.h>

#include "base/error.h"
#include "store/segment/call_list.h"

static const char what[] = "cannot read the functions of goroutines";

static int take_list(sqlite3_stmt *row, struct census *functions, struct error *err)
{
    struct call_list_reader list;
    struct function_calls named;
    int code = call_list_open(sqlite3_column_blob(row, 1), (size_t)sqlite3_column_bytes(row, 1), &list);

    while (!code && (code = call_list_next(&list, &named)) == 0)
        if (census_add_calls(functions, named.function, 0))
            return error_no_memory(err);
    return code == 1 ? 0
                     : error_say(err, -EBADMSG,
                                 "%s: the list of segment %lld is damaged (run 'tracectl verify' "
                                 "for details)",
                                 what, (long long)sqlite3_column_int64(row, 0));
}

int go_functions_take(sqlite3 *db, int64_t run_id, struct census *functions, struct error *err)
{
    AUTO_STATEMENT *row = NULL;
    int result = SQLITE_DONE, code = db_prepare(db,
                                                "SELECT segment_id, names FROM main.process_segments WHERE "
                                                "stream = 1 AND (run_id = ?1 OR ?1 = 0)",
                                                what, &row, err);

    if (code)
        return code;
    db_bind(row, "i", run_id);
    while (!code && (result = db_row(row, "ib")) == SQLITE_ROW)
        code = take_list(row, functions, err);
    return code || result == SQLITE_DONE ? code : db_fail(db, err, what);
}
