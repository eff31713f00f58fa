/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl top RUN: functions by calls, from the catalog. */
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/table.h"

struct top_input {
    const char *run;
    long limit; /* 0: all */
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct top_input *input = state->input;
    char *end;

    switch (key) {
    case 'n':
        input->limit = strtol(arg, &end, 10);
        if (!*arg || *end || input->limit < 0)
            argp_error(state, "'%s' is not a number of functions", arg);
        return 0;
    case ARGP_KEY_ARG:
        if (input->run)
            argp_usage(state);
        input->run = arg;
        return 0;
    case ARGP_KEY_END:
        if (!input->run)
            argp_error(state, "top needs a run (tracectl runs lists them)");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {
    {"limit", 'n', "N", 0, "Show the first N functions (default 20, 0: all)", 0},
    {0},
};
static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "RUN",
    .doc = "Show the functions of a run that were called most.",
    .children = cli_common_children,
};

/* By function and not by name: two functions of one name are two rows. */
static const char top_sql[] =
    "SELECT c.name, sum(c.calls) AS calls, count(DISTINCT c.thread_id), i.path, coalesce(f.file, ''), "
    "coalesce(f.line, 0), EXISTS (SELECT 1 FROM blind b WHERE b.run_id = c.run_id AND b.function_id = "
    "c.function_id) "
    "FROM call_counts c JOIN functions f ON f.function_id = c.function_id "
    "JOIN images i ON i.image_id = f.image_id WHERE c.run_id = ?1 GROUP BY c.function_id "
    "ORDER BY calls DESC, c.name, c.function_id LIMIT ?2";

enum top_column { TOP_NAME, TOP_CALLS, TOP_THREADS, TOP_IMAGE, TOP_FILE, TOP_LINE, TOP_BLIND };

static json_t *row_json(sqlite3_stmt *row, uint64_t all)
{
    uint64_t calls = (uint64_t)sqlite3_column_int64(row, TOP_CALLS);

    return json_pack(
        "{s:o, s:I, s:f, s:I, s:o, s:o, s:I, s:b}", "name", cli_json_text(cli_text(row, TOP_NAME)), "calls",
        (json_int_t)calls, "percent", all ? 100.0 * (double)calls / (double)all : 0.0, "threads",
        (json_int_t)sqlite3_column_int64(row, TOP_THREADS), "image", cli_json_text(cli_text(row, TOP_IMAGE)),
        "file", cli_json_text(cli_text(row, TOP_FILE)), "line",
        (json_int_t)sqlite3_column_int64(row, TOP_LINE), "muted", sqlite3_column_int(row, TOP_BLIND));
}

static void row_text(struct table *table, sqlite3_stmt *row, uint64_t all)
{
    uint64_t calls = (uint64_t)sqlite3_column_int64(row, TOP_CALLS);
    int muted = sqlite3_column_int(row, TOP_BLIND);

    table_cell_count(table, calls);
    table_cell_format(table, "%.1f%%", all ? 100.0 * (double)calls / (double)all : 0.0);
    table_cell(table, cli_text(row, TOP_THREADS));
    table_cell_format(table, "%s%s", cli_text(row, TOP_NAME), muted ? " (muted at times: more calls)" : "");
}

static int print(struct tracestore *store, const struct tracestore_run *run, const struct top_input *input,
                 struct error *err)
{
    static const char *const titles[] = {">CALLS", ">SHARE", ">THREADS", "FUNCTION"};
    AUTO_STATEMENT sqlite3_stmt *statement = NULL;
    AUTO_JSON json_t *functions = json_array();
    struct table *table = NULL;
    struct tracestore_totals totals;
    int64_t limit = input->limit ? input->limit : -1;
    int r = tracestore_run_totals(store, run->run_id, &totals, err);

    if (r == 0)
        r = cli_prepare(store, &statement, err, top_sql, 2, run->run_id, limit);
    if (r == 0 && !cli.json)
        table = table_new(stdout, titles, ARRAY_SIZE(titles), cli_colour());
    while (r == 0 && (r = cli_step(statement, err)) == 0) {
        if (cli.json)
            json_array_append_new(functions, row_json(statement, totals.calls));
        else
            row_text(table, statement, totals.calls);
    }
    if (r < 0) {
        table_free(table);
        return r;
    }
    if (!cli.json)
        return table_free(table) < 0 ? error_no_memory(err) : 0;
    AUTO_JSON json_t *document =
        json_pack("{s:I, s:o, s:I, s:I, s:b, s:O}", "run", (json_int_t)run->run_id, "name",
                  cli_json_text(run->name), "calls", (json_int_t)totals.calls, "lost",
                  (json_int_t)totals.lost, "complete", totals.complete, "functions", functions);
    cli_json_print(document);
    return 0;
}

static int run(int argc, char **argv)
{
    struct top_input input = {.limit = 20};
    AUTO_STORE struct tracestore *store = NULL;
    AUTO_RUN struct tracestore_run run = {0};
    struct error err = {0};

    cli_parse(&cmd_top, argc, argv, &input);
    if (cli_open_run(input.run, TRACESTORE_READ, &store, &run, &err) < 0 ||
        print(store, &run, &input, &err) < 0)
        return cli_fail(&err);
    return cli_finish(EXIT_NOTHING_FOUND);
}

const struct command cmd_top = {
    .name = "top",
    .summary = "functions of a run by calls",
    .argp = &argp,
    .run = run,
};
