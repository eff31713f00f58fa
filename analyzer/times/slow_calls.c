/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/times/slow_calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/times/slow_subtree.h"
#include "base/error.h"
#include "store/api/tracestore.h"
#include "store/db/db.h"

void slow_calls_release(struct slow_calls *calls)
{
    for (size_t i = 0; i < calls->count; i++) {
        free(calls->calls[i].callers);
        free(calls->calls[i].nodes);
    }
    free(calls->calls);
    *calls = (struct slow_calls){0};
}

/* ------------------------------------------------------------------------------------------ which are slowest */

static const char calls_sql[] =
    "SELECT thread_id, seq, coalesce(end_seq, seq), coalesce(duration_min_ns, 0), coalesce(duration_max_ns, -1),"
    " state = 'returned', duration_min_ns IS NULL FROM calls WHERE run_id = ?1 AND function_id IN"
    " (SELECT function_id FROM functions WHERE ?2 IN (name, demangled))";

static bool is_slower(const struct slow_call *a, const struct slow_call *b)
{
    if (a->duration.min_ns != b->duration.min_ns)
        return a->duration.min_ns > b->duration.min_ns;
    if (a->duration.max_ns != b->duration.max_ns)
        return a->duration.max_ns > b->duration.max_ns;
    return a->thread_id != b->thread_id ? a->thread_id < b->thread_id : a->seq < b->seq;
}

/* Keeps the `most` slowest, in order. `calls` has a place for each. */
static void insert(struct slow_calls *calls, size_t most, const struct slow_call *call)
{
    size_t low = 0, high = calls->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (is_slower(&calls->calls[middle], call))
            low = middle + 1;
        else
            high = middle;
    }
    if (low == most)
        return;
    calls->count += calls->count < most;
    memmove(&calls->calls[low + 1], &calls->calls[low], (calls->count - 1 - low) * sizeof(*calls->calls));
    calls->calls[low] = *call;
}

static void take_row(struct slow_calls *calls, size_t most, sqlite3_stmt *row)
{
    struct slow_call call = {
        .thread_id = sqlite3_column_int64(row, 0),
        .seq = (uint64_t)sqlite3_column_int64(row, 1),
        .end_seq = (uint64_t)sqlite3_column_int64(row, 2),
        .duration = {(uint64_t)sqlite3_column_int64(row, 3), (uint64_t)sqlite3_column_int64(row, 4)},
    };

    if (!sqlite3_column_int(row, 5)) {
        calls->unreturned++;
        return;
    }
    calls->returned++;
    calls->unknown += (uint64_t)sqlite3_column_int64(row, 6);
    insert(calls, most, &call);
}

static int choose(struct tracestore *store, int64_t run_id, const char *function, size_t most,
                  struct slow_calls *calls, struct error *err)
{
    static const char what[] = "cannot read the calls of the run";
    sqlite3 *db = tracestore_db(store);
    AUTO_STATEMENT *row = NULL;
    int result, code = db_prepare(db, calls_sql, what, &row, err);

    if (code)
        return code;
    db_bind(row, "it", run_id, function);
    while ((result = db_row(row, "nnnniii")) == SQLITE_ROW)
        take_row(calls, most, row);
    return result == SQLITE_DONE ? 0 : db_fail(db, err, what);
}

/* ------------------------------------------------------------------------------------------ all of it */

int slow_calls_read(struct tracestore *store, int64_t run_id, const char *function, size_t most, size_t depth,
                    struct slow_calls *ret_calls, struct error *err)
{
    struct slow_calls calls = {.calls = calloc(most, sizeof(*calls.calls))};
    int r = calls.calls ? choose(store, run_id, function, most, &calls, err) : error_no_memory(err);

    for (size_t i = 0; i < calls.count && !r; i++)
        r = slow_subtree_read(tracestore_db(store), &calls.calls[i], depth, err);
    if (r) {
        slow_calls_release(&calls);
        return r;
    }
    *ret_calls = calls;
    return 0;
}
