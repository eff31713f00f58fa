/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which functions of a binary are called too often for a budget, from one recording to the next. */
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/error.h"
#include "store/writer/writer.h"

int trace_writer_budget_plan(struct trace_writer *writer, const char *build_id, uint64_t address,
                             double calls_per_second, struct error *err)
{
    static const struct catalog_statement
        insert = {.what = "cannot write a plan",
                  .sql = "INSERT OR REPLACE INTO budget_plans VALUES (?1, ?2, ?3)",
                  .types = "tid"},
        clear = {.what = "cannot write a plan",
                 .sql = "DELETE FROM budget_plans WHERE build_id = ?1 AND address = ?2",
                 .types = "ti"};
    int r = calls_per_second > 0 ? catalog_queue_add(&writer->catalog, &insert, 0, build_id, (int64_t)address,
                                                     calls_per_second)
                                 : catalog_queue_add(&writer->catalog, &clear, 0, build_id, (int64_t)address);

    return r ? error_no_memory(err) : 0;
}

static int read_plan(struct tracestore *store, const char *build_id, struct trace_budget_plan **plan,
                     size_t *count, struct error *err)
{
    static const char what[] = "cannot read a plan";
    sqlite3 *db = tracestore_db(store);
    sqlite3_stmt *rows = NULL;
    size_t capacity = 0;
    int code = db_prepare(
        db, "SELECT address, calls_per_second FROM main.budget_plans WHERE build_id = ?1 ORDER BY address",
        what, &rows, err);

    if (code)
        return code;
    db_bind(rows, "t", build_id);
    while (!code && db_row(rows, "id") == SQLITE_ROW) {
        if (array_reserve(plan, &capacity, *count + 1))
            code = error_no_memory(err);
        else
            (*plan)[(*count)++] = (struct trace_budget_plan){(uint64_t)sqlite3_column_int64(rows, 0),
                                                             sqlite3_column_double(rows, 1)};
    }
    sqlite3_finalize(rows);
    return code;
}

int tracestore_budget_plan(struct tracestore *store, const char *build_id,
                           struct trace_budget_plan **ret_plan, size_t *ret_count, struct error *err)
{
    struct trace_budget_plan *plan = NULL;
    size_t count = 0;
    int code = read_plan(store, build_id, &plan, &count, err);

    if (code) {
        free(plan);
        return code;
    }
    *ret_plan = plan;
    *ret_count = count;
    return 0;
}
