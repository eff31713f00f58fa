/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/analysis/top_run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/times/time_text.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/analysis/top_row.h"
#include "cli/common/command.h"
#include "cli/common/completeness.h"
#include "cli/common/output.h"
#include "cli/common/table.h"

struct top {
    const struct top_run_options *options;
    struct tracestore *store;
    const struct tracestore_run *run;
    struct function_times times;
    bool timed;
    struct top_row *rows;
    size_t count, capacity;
    struct tracestore_totals totals;
    struct completeness completeness;
};

static const char *const sort_names[] = {
    [TIME_ORDER_CALLS] = "calls", [TIME_ORDER_TOTAL] = "total", [TIME_ORDER_SELF] = "self",
    [TIME_ORDER_P99] = "p99",     [TIME_ORDER_LONGEST] = "max",
};

bool top_run_parse_sort(const char *text, enum time_order *ret_sort)
{
    for (size_t i = 0; i < ARRAY_SIZE(sort_names); i++) {
        if (strcmp(text, sort_names[i]) != 0)
            continue;
        *ret_sort = (enum time_order)i;
        return true;
    }
    return false;
}

/* ------------------------------------------------------------------------------------------ rows */

/* By function and not by name: two functions of one name are two rows. Of calls that were not recorded some were
 * counted; how many the others were is estimated from the rate that was measured before the probe was removed. */
static const char rows_sql[] =
    "WITH recorded AS (SELECT function_id, sum(calls) AS calls, count(DISTINCT thread_id) AS threads "
    "FROM call_counts WHERE run_id = ?1 GROUP BY function_id), "
    "missed AS (SELECT function_id, max(calls_per_second) AS rate, sum(coalesce(calls_missed, "
    "calls_per_second * max(0, coalesce(to_ns, ?3) - max(from_ns, ?4)) / 1e9)) AS calls "
    "FROM blind WHERE run_id = ?1 GROUP BY function_id), "
    "either AS (SELECT function_id FROM recorded UNION SELECT function_id FROM missed WHERE calls > 0) "
    "SELECT coalesce(f.demangled, f.name), coalesce(r.calls, 0) AS calls, coalesce(r.threads, 0), i.path, "
    "coalesce(f.file, ''), coalesce(f.line, 0), m.function_id IS NOT NULL, f.function_id, f.name, m.rate, "
    "m.calls FROM either e JOIN functions f ON f.function_id = e.function_id "
    "JOIN images i ON i.image_id = f.image_id LEFT JOIN recorded r ON r.function_id = e.function_id "
    "LEFT JOIN missed m ON m.function_id = e.function_id "
    "ORDER BY coalesce(r.calls, 0) + coalesce(m.calls, 0) DESC, 1, f.function_id LIMIT ?2";

enum row_column {
    ROW_NAME,
    ROW_CALLS,
    ROW_THREADS,
    ROW_IMAGE,
    ROW_FILE,
    ROW_LINE,
    ROW_BLIND,
    ROW_ID,
    ROW_SPELLED,
    ROW_RATE,
    ROW_MISSED
};

/* A store may have been made by somebody who wants a reader to fail. */
#define ESTIMATE_MOST 1e18

static double estimate(sqlite3_stmt *row, int column)
{
    double number = sqlite3_column_double(row, column);

    return number > 0 ? (number < ESTIMATE_MOST ? number : ESTIMATE_MOST) : 0;
}

static bool is_wanted(const struct top *top, sqlite3_stmt *row)
{
    const char *function = top->options->function;

    return !function || !strcmp(function, cli_text(row, ROW_NAME)) ||
           !strcmp(function, cli_text(row, ROW_SPELLED));
}

static int add_row(struct top *top, sqlite3_stmt *statement)
{
    const struct function_time *time =
        function_times_find(&top->times, (uint32_t)sqlite3_column_int64(statement, ROW_ID));
    struct top_row *row;

    if (array_reserve(&top->rows, &top->capacity, top->count + 1))
        return -ENOMEM;
    row = &top->rows[top->count++];
    *row = (struct top_row){
        .name = db_text(statement, ROW_NAME),
        .spelled = db_text(statement, ROW_SPELLED),
        .image = db_text(statement, ROW_IMAGE),
        .file = db_text(statement, ROW_FILE),
        .line = sqlite3_column_int64(statement, ROW_LINE),
        .threads = sqlite3_column_int64(statement, ROW_THREADS),
        .calls = (uint64_t)sqlite3_column_int64(statement, ROW_CALLS),
        .muted = sqlite3_column_int(statement, ROW_BLIND),
        .missed = estimate(statement, ROW_MISSED),
        .missed_per_second = estimate(statement, ROW_RATE),
    };
    if (time)
        row->time = *time;
    return row->name && row->spelled && row->image && row->file ? 0 : -ENOMEM;
}

static int compare_rows(const void *a, const void *b, void *order)
{
    return function_time_compare(&((const struct top_row *)a)->time, &((const struct top_row *)b)->time,
                                 *(const enum time_order *)order);
}

static int read_rows(struct top *top, struct error *err)
{
    const struct top_run_options *options = top->options;
    AUTO_STATEMENT *row = NULL;
    enum time_order order = options->sort;
    bool all = options->function || order != TIME_ORDER_CALLS || !options->limit;
    uint64_t ended_ns = top->run->ended_ns ? top->run->ended_ns : clock_ns(CLOCK_REALTIME);
    int r = cli_prepare(top->store, &row, err, rows_sql, 4, top->run->run_id,
                        all ? (int64_t)-1 : (int64_t)options->limit, (int64_t)ended_ns,
                        (int64_t)top->run->started_ns);

    while (r == 0 && (r = cli_step(row, "tnntti-itDD", err)) == 0)
        if (is_wanted(top, row) && add_row(top, row))
            r = error_no_memory(err);
    if (r < 0)
        return r;
    if (options->function && !top->count)
        return error_say(err, -ENOENT, "no calls of a function '%s' in run %s (tracectl top lists them)",
                         options->function, options->run);
    if (order != TIME_ORDER_CALLS && top->count)
        qsort_r(top->rows, top->count, sizeof(*top->rows), compare_rows, &order);
    return 0;
}

/* Times are read where each event has one, or somebody asks for them: else they would be wide ranges. */
static int read_times(struct top *top, struct error *err)
{
    const struct top_run_options *options = top->options;
    int r = function_times_of_every_event(top->store, top->run->run_id, &top->timed, err);

    top->timed |= options->function || options->sort != TIME_ORDER_CALLS;
    if (r < 0 || !top->timed)
        return r;
    return function_times_read(top->store, top->run->run_id, FUNCTION_TIMES_PERCENTILES, &top->times, err);
}

/* ------------------------------------------------------------------------------------------ text */

static const char *const plain_columns[] = {">CALLS", ">SHARE", ">THREADS", "FUNCTION"};
static const char *const timed_columns[] = {">CALLS", ">SHARE", ">TIME",    ">SELF",   ">P50",
                                            ">P99",   ">MAX",   ">THREADS", "FUNCTION"};

static void cell_time(struct table *table, const struct function_time *time, struct time_range range)
{
    char text[TIME_TEXT_SIZE] = "?";

    if (function_time_is_known(time))
        time_range_text(range, text);
    table_cell(table, text);
}

static void add_name(struct table *table, const struct top_row *row)
{
    char missed[32], rate[32];

    if (!row->muted || !(row->missed > 0)) {
        table_cell_format(table, "%s%s", row->name, row->muted ? " (undercounted)" : "");
        return;
    }
    text_count((uint64_t)(row->missed + 0.5), missed, sizeof(missed));
    text_count((uint64_t)(row->missed_per_second + 0.5), rate, sizeof(rate));
    if (row->missed_per_second > 0)
        table_cell_format(table, "%s (not recorded: ~%s calls more, ~%s/s)", row->name, missed, rate);
    else
        table_cell_format(table, "%s (not recorded: %s calls more)", row->name, missed);
}

static void add_line(struct table *table, const struct top *top, const struct top_row *row)
{
    const struct function_time *time = &row->time;
    uint64_t all = top->totals.calls;

    table_cell_count(table, row->calls);
    if (row->missed > 0)
        table_cell(table, "?");
    else
        table_cell_format(table, "%.1f%%", all ? 100.0 * (double)row->calls / (double)all : 0.0);
    if (top->timed) {
        cell_time(table, time, time->total);
        cell_time(table, time, time->self);
        cell_time(table, time, time->p50);
        cell_time(table, time, time->p99);
        cell_time(table, time, time->longest);
    }
    table_cell_count(table, (uint64_t)row->threads);
    add_name(table, row);
}

static int print_text(const struct top *top, size_t count, struct error *err)
{
    struct table *table;

    if (top->options->function) {
        for (size_t i = 0; i < count; i++)
            top_row_print(&top->rows[i]);
    } else {
        table = top->timed ? table_new(stdout, timed_columns, ARRAY_SIZE(timed_columns), cli_colour())
                           : table_new(stdout, plain_columns, ARRAY_SIZE(plain_columns), cli_colour());
        if (!table)
            return error_no_memory(err);
        for (size_t i = 0; i < count; i++)
            add_line(table, top, &top->rows[i]);
        if (table_free(table) < 0)
            return error_no_memory(err);
    }
    completeness_print(&top->completeness, 1);
    return 0;
}

/* ------------------------------------------------------------------------------------------ the command */

static void print_json(const struct top *top, size_t count)
{
    AUTO_JSON json_t *functions = json_array();
    json_t *(*make)(const struct top_row *, uint64_t) =
        top->options->function ? top_row_json_histogram : top_row_json;

    for (size_t i = 0; i < count; i++)
        json_array_append_new(functions, make(&top->rows[i], top->totals.calls));
    AUTO_JSON json_t *document =
        json_pack("{s:I, s:o, s:I, s:I, s:b, s:s, s:O, s:o}", "run", (json_int_t)top->run->run_id, "name",
                  cli_json_text(top->run->name), "calls", (json_int_t)top->totals.calls, "lost",
                  (json_int_t)top->totals.lost, "complete", top->totals.complete, "sort",
                  sort_names[top->options->sort], "functions", functions, "completeness",
                  completeness_json(&top->completeness, 1));
    cli_json_print(document);
}

static void top_release(struct top *top)
{
    for (size_t i = 0; i < top->count; i++)
        top_row_release(&top->rows[i]);
    free(top->rows);
    function_times_release(&top->times);
}

int top_run(const struct top_run_options *options, struct error *err)
{
    AUTO_STORE struct tracestore *store = NULL;
    AUTO_RUN struct tracestore_run run = {0};
    CLEANUP(top_release) struct top top = {.options = options, .run = &run};
    size_t count;
    int r = cli_open_run(options->run, TRACESTORE_READ, &store, &run, err);

    top.store = store;
    if (r == 0)
        r = tracestore_run_totals(store, run.run_id, &top.totals, err);
    if (r == 0)
        r = completeness_read(store, run.run_id, &top.completeness, err);
    if (r == 0)
        r = read_times(&top, err);
    if (r == 0)
        r = read_rows(&top, err);
    if (r < 0)
        return r;
    count = options->limit && options->limit < top.count ? options->limit : top.count;
    if (!cli.json)
        return print_text(&top, count, err);
    print_json(&top, count);
    return 0;
}
