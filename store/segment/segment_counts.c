/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/segment/segment_counts.h"

#include "base/error.h"

static const char what[] = "cannot read the numbers of calls";

int segment_counts_open(struct segment_counts *counts, sqlite3 *db, enum counts_of of, struct error *err)
{
#define LISTS "SELECT segment_id, functions FROM main.segments"
    static const char *const sql[] = {
        [COUNTS_OF_ALL] = LISTS " ORDER BY segment_id",
        [COUNTS_OF_RUN] = LISTS " WHERE run_id = ?1",
        [COUNTS_OF_THREAD] = LISTS " WHERE thread_id = ?1",
        [COUNTS_OF_SEGMENT] = LISTS " WHERE segment_id = ?1",
    };

    *counts = (struct segment_counts){.db = db, .list = call_list_empty()};
    return db_prepare(db, sql[of], what, &counts->rows, err);
}

void segment_counts_close(struct segment_counts *counts)
{
    sqlite3_finalize(counts->rows);
    *counts = (struct segment_counts){0};
}

void segment_counts_rewind(struct segment_counts *counts)
{
    sqlite3_reset(counts->rows);
    counts->list = call_list_empty();
}

void segment_counts_select(struct segment_counts *counts, int64_t id)
{
    segment_counts_rewind(counts);
    sqlite3_bind_int64(counts->rows, 1, id);
}

static int damaged(const struct segment_counts *counts, struct error *err)
{
    return error_say(err, -EBADMSG,
                     "%s: the list of the functions of segment %lld is damaged (run 'tracectl verify' "
                     "for details)",
                     what, (long long)counts->segment_id);
}

/* To the next row. 1: there is none. */
static int step(struct segment_counts *counts, struct error *err)
{
    int result = db_row(counts->rows, "ib");

    if (result == SQLITE_DONE)
        return 1;
    if (result != SQLITE_ROW)
        return db_fail(counts->db, err, what);
    counts->segment_id = sqlite3_column_int64(counts->rows, 0);
    return 0;
}

int segment_counts_next(struct segment_counts *counts, struct function_calls *ret_function, struct error *err)
{
    int code;

    while ((code = call_list_next(&counts->list, ret_function)) == 1) {
        code = step(counts, err);
        if (code)
            return code;
        if (call_list_open(sqlite3_column_blob(counts->rows, 1),
                           (size_t)sqlite3_column_bytes(counts->rows, 1), &counts->list))
            return damaged(counts, err);
    }
    if (!code)
        return 0;
    counts->list = call_list_empty();
    return damaged(counts, err);
}

int segment_counts_sum(struct segment_counts *counts, struct census *census, struct error *err)
{
    struct function_calls function;
    int code;

    while ((code = segment_counts_next(counts, &function, err)) == 0)
        if (census_add_calls(census, function.function, function.calls))
            return error_no_memory(err);
    return code == 1 ? 0 : code;
}
