/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Times of functions against SQL over the calls of random runs, computed naively (model.h). */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "analyzer/times/function_changes.h"
#include "analyzer/times/function_times.h"
#include "base/error.h"
#include "tests/unit/store/model.h"

/* Of calls with times that returned. What has no upper bound makes the sum have none: -1. */
static const char naive_sql[] =
    "WITH timed AS (SELECT * FROM x_calls WHERE run_id = 1 AND state = 'returned' AND duration_min_ns NOTNULL), "
    "inner AS (SELECT thread_id, parent_seq AS seq, sum(coalesce(duration_min_ns, 0)) AS least, "
    "iif(count(duration_max_ns) = count(*), sum(duration_max_ns), 1 << 62) AS most FROM x_calls "
    "WHERE run_id = 1 AND state = 'returned' GROUP BY 1, 2) "
    "SELECT function_id, count(*), sum(duration_min_ns), "
    "iif(count(duration_max_ns) = count(*), sum(duration_max_ns), -1), "
    "sum(max(0, duration_min_ns - coalesce(most, 0))), "
    "iif(count(duration_max_ns) = count(*), sum(max(0, duration_max_ns - coalesce(least, 0))), -1), "
    "min(duration_min_ns), max(duration_min_ns), "
    "iif(count(duration_max_ns) = count(*), max(duration_max_ns), -1), "
    "median(duration_min_ns), iif(count(duration_max_ns) = count(*), percentile(duration_max_ns, 90), -1) "
    "FROM timed LEFT JOIN inner USING (thread_id, seq) GROUP BY function_id ORDER BY function_id";

static void expect(const struct function_time *time, sqlite3_stmt *row)
{
    const uint64_t got[] = {time->timed,          time->total.min_ns,   time->total.max_ns,
                            time->self.min_ns,    time->self.max_ns,    time->shortest.min_ns,
                            time->longest.min_ns, time->longest.max_ns, time->p50.min_ns,
                            time->p90.max_ns};

    for (int i = 0; i < 10; i++) {
        double wanted = sqlite3_column_double(row, i + 1), have = (double)got[i];

        if (wanted < 0)
            cr_assert_eq(got[i], UINT64_MAX, "number %d", i);
        else
            cr_assert_float_eq(have, wanted, 0.51, "number %d: %.1f, not %.1f", i, have, wanted);
    }
}

static size_t compare_run(const struct model_options *options)
{
    struct model model;
    struct function_times times;
    struct error err = {0};
    sqlite3_stmt *row;
    size_t rows = 0, known = 0;

    model_init(&model, options);
    cr_assert_eq(function_times_read(model.store, 1, FUNCTION_TIMES_PERCENTILES, &times, &err), 0, "%s",
                 err.message);
    cr_assert_eq(sqlite3_prepare_v2(model.db, naive_sql, -1, &row, NULL), SQLITE_OK, "%s",
                 sqlite3_errmsg(model.db));
    for (; sqlite3_step(row) == SQLITE_ROW; rows++) {
        const struct function_time *time =
            function_times_find(&times, (uint32_t)sqlite3_column_int64(row, 0));

        cr_assert_not_null(time);
        expect(time, row);
    }
    for (size_t i = 0; i < times.count; i++)
        known += times.functions[i].timed > 0;
    cr_assert_eq(known, rows);
    sqlite3_finalize(row);
    function_times_release(&times);
    model_release(&model);
    return rows;
}

Test(function_times, are_those_of_sql)
{
    struct model_options options = {
        .runs = 2, .threads = 3, .events = 600, .segment_events = 70, .times = true};
    size_t rows = 0;

    for (options.seed = 1; options.seed < 10; options.seed++) {
        options.lost_percent = options.seed % 3;
        options.unfinished = options.seed % 2;
        rows += compare_run(&options);
    }
    cr_assert_gt(rows, 0);
}

Test(function_times, without_times)
{
    const struct model_options options = {.seed = 3, .runs = 1, .threads = 2, .events = 300};

    cr_assert_eq(compare_run(&options), 0);
}

Test(function_times, what_is_known_comes_first)
{
    struct function_time exact = {.function_id = 1, .calls = 1, .returned = 1, .timed = 1, .total = {5, 5}},
                         range = {.function_id = 2, .calls = 2, .returned = 2, .timed = 2, .total = {4, 90}},
                         unknown = {.function_id = 3, .calls = 3, .returned = 3, .timed = 2, .total = {9, 9}};

    cr_assert_lt(function_time_compare(&exact, &range, TIME_ORDER_TOTAL), 0);
    cr_assert_gt(function_time_compare(&unknown, &range, TIME_ORDER_TOTAL), 0);
    cr_assert_lt(function_time_compare(&unknown, &range, TIME_ORDER_CALLS), 0);
    cr_assert(function_time_is_exact(&exact) && !function_time_is_exact(&range));
    cr_assert(!function_time_is_known(&unknown));
}

/* Calls of a function, by its name for people, in a run of the model. */
static int64_t calls_of(struct model *model, int run, const char *name)
{
    char *sql = sqlite3_mprintf("SELECT count(*) FROM x_calls WHERE run_id = %d AND name = %Q", run, name);
    int64_t calls = model_number(model, sql);

    sqlite3_free(sql);
    return calls;
}

static void compare_runs(struct model *model, const int *runs, size_t count, struct function_changes *changes)
{
    struct change_source sources[3];
    struct error err = {0};

    for (size_t i = 0; i < count; i++)
        sources[i] = (struct change_source){model->store, runs[i]};
    cr_assert_eq(function_changes_read(sources, count, changes, &err), 0, "%s", err.message);
    for (size_t i = 0; i < changes->count; i++) {
        const struct function_change *function = &changes->functions[i];

        cr_assert_eq((int64_t)function->before.calls, calls_of(model, runs[0], function->name));
        cr_assert_eq((int64_t)function->after.calls, calls_of(model, runs[count - 1], function->name));
        cr_assert_eq(function->change > 0, i < changes->changed, "the changed ones come first");
    }
}

Test(function_changes, are_what_baselines_do_not_have)
{
    const struct model_options options = {.seed = 5, .runs = 3, .threads = 2, .events = 300, .times = true};
    struct function_changes changes;
    struct model model;

    model_init(&model, &options);
    compare_runs(&model, (const int[]){1, 1}, 2, &changes);
    cr_assert(changes.count > 0 && changes.changed == 0 && !changes.timed);
    function_changes_release(&changes);
    compare_runs(&model, (const int[]){1, 2}, 2, &changes);
    cr_assert(changes.changed > 0);
    for (size_t i = 0; i < changes.count; i++)
        cr_assert_eq(changes.functions[i].before.calls != changes.functions[i].after.calls,
                     i < changes.changed);
    function_changes_release(&changes);
    compare_runs(&model, (const int[]){1, 2, 2}, 3, &changes);
    cr_assert_eq(changes.changed, 0, "the candidate run is one of the baselines");
    function_changes_release(&changes);
    model_release(&model);
}

/* Of those that changed, most time of their own first; one that is not called takes none; the others stay behind. */
Test(function_changes, are_ordered_by_the_time_that_differs)
{
    struct function_change functions[] = {
        {.name = (char *)"fivefold",
         .change = 0.8,
         .before = {1, {1, 1}, {1, 1}, {1, 1}},
         .after = {1, {5, 5}, {5, 5}, {5, 5}}},
        {.name = (char *)"gone", .change = 1, .before = {1, {60, 60}, {60, 60}, {60, 60}}},
        {.name = (char *)"long",
         .change = 0.5,
         .before = {1, {100, 100}, {100, 100}, {9, 9}},
         .after = {1, {200, 200}, {200, 200}, {9, 9}}},
        {.name = (char *)"meets",
         .change = 0.3,
         .before = {1, {0, 500}, {0, 500}, {0, 500}},
         .after = {2, {0, 900}, {400, 900}, {0, 900}}},
        {.name = (char *)"same",
         .change = 0,
         .before = {1, {0, 0}, {0, 0}, {0, 0}},
         .after = {1, {0, 0}, {900, 900}, {0, 0}}},
    };
    struct function_changes changes = {.functions = functions, .count = 5, .changed = 4, .timed = true};
    static const char *const order[] = {"long", "gone", "fivefold", "meets", "same"};

    function_changes_order_by_time(&changes);
    for (int i = 0; i < 5; i++)
        cr_assert_str_eq(functions[i].name, order[i]);
}
