/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl runs: what is in the store. */
#include <errno.h>

#include "base/array.h"
#include "base/error.h"
#include "cli/common/command.h"
#include "cli/common/output.h"
#include "cli/common/table.h"

static const char runs_sql[] =
    "SELECT run_id, name, command, started_ns, coalesce(ended_ns, 0), exit_status FROM runs ORDER BY run_id";

enum runs_column { RUNS_RUN, RUNS_NAME, RUNS_COMMAND, RUNS_STARTED, RUNS_ENDED, RUNS_EXIT };

static void print_json(struct json_array *array, sqlite3_stmt *statement,
                       const struct tracestore_totals *totals)
{
    uint64_t started = (uint64_t)sqlite3_column_int64(statement, RUNS_STARTED);
    json_t *run = json_object();

    json_object_set_new(run, "run", json_integer(sqlite3_column_int64(statement, RUNS_RUN)));
    json_object_set_new(run, "name", cli_json_text(cli_text(statement, RUNS_NAME)));
    json_object_set_new(run, "command", cli_json_text(cli_text(statement, RUNS_COMMAND)));
    json_object_set_new(run, "started", cli_json_time(started));
    json_object_set_new(run, "ended", cli_json_time((uint64_t)sqlite3_column_int64(statement, RUNS_ENDED)));
    json_object_set_new(run, "exit_status",
                        sqlite3_column_type(statement, RUNS_EXIT) == SQLITE_NULL
                            ? json_null()
                            : json_integer(sqlite3_column_int64(statement, RUNS_EXIT)));
    json_object_set_new(run, "threads", cli_json_count(totals->threads));
    json_object_set_new(run, "events", cli_json_count(totals->events));
    json_object_set_new(run, "lost", cli_json_count(totals->lost));
    json_object_set_new(run, "complete", json_boolean(totals->complete));
    json_object_set_new(run, "stored_bytes", cli_json_count(totals->stored_bytes));
    cli_json_item(array, run);
}

static void print_row(struct table *table, sqlite3_stmt *statement, const struct tracestore_totals *totals)
{
    char started[40], bytes[32];

    cli_format_time((uint64_t)sqlite3_column_int64(statement, RUNS_STARTED), 0, started, sizeof(started));
    cli_format_bytes(totals->stored_bytes, bytes, sizeof(bytes));
    table_cell(table, cli_text(statement, RUNS_RUN));
    table_cell(table, cli_text(statement, RUNS_NAME));
    table_cell(table, started);
    table_cell_count(table, totals->threads);
    table_cell_count(table, totals->events);
    table_cell(table, bytes);
    table_cell_format(table, "%s%s", totals->complete ? "complete" : "incomplete",
                      sqlite3_column_int64(statement, RUNS_ENDED) ? "" : ", not ended");
    table_cell(table, cli_text(statement, RUNS_COMMAND));
}

static int list(struct tracestore *store, struct error *err)
{
    static const char *const titles[] = {">RUN",    "NAME",    "STARTED", ">THREADS",
                                         ">EVENTS", ">STORED", "STATE",   "COMMAND"};
    AUTO_STATEMENT *statement = NULL;
    AUTO_TOTALS_READER *reader = NULL;
    struct table *table = cli.json ? NULL : table_new(stdout, titles, ARRAY_SIZE(titles), cli_colour());
    struct json_array array = {0};
    int r = tracestore_totals_open(store, 0, &reader, err);

    if (r == 0)
        r = cli_prepare(store, &statement, err, runs_sql, 0);
    if (cli.json)
        cli_json_begin(&array);
    while (r == 0 && (r = cli_step(statement, "ittnnI", err)) == 0) {
        struct tracestore_totals totals;

        r = tracestore_totals_read(reader, sqlite3_column_int64(statement, RUNS_RUN), &totals, err);
        if (r == 0 && cli.json)
            print_json(&array, statement, &totals);
        else if (r == 0)
            print_row(table, statement, &totals);
    }
    if (cli.json) {
        cli_json_end(&array);
        putchar('\n');
    } else if (table_free(table) < 0 && r >= 0) {
        r = error_no_memory(err);
    }
    return r < 0 ? r : 0;
}

static const struct argp argp = {
    .parser = cli_parse_no_arguments,
    .doc =
        "List the runs of the store.\vSTATE is 'incomplete' if events are missing ('tracectl show RUN' "
        "lists them), and 'not ended' while the run is being recorded or if its recorder died.",
    .children = cli_common_children,
};

static int run(int argc, char **argv)
{
    AUTO_STORE struct tracestore *store = NULL;
    struct error err = {0};

    cli_parse(&cmd_runs, argc, argv, NULL);
    if (cli_open_store(TRACESTORE_READ, &store, &err) < 0 || list(store, &err) < 0)
        return cli_fail(&err);
    return cli_finish(EXIT_NOTHING_FOUND);
}

const struct command cmd_runs = {
    .name = "runs",
    .summary = "list the runs of the store",
    .argp = &argp,
    .examples =
        "List the runs of another store, as JSON:\n"
        "  tracectl -d other.db --json runs\n",
    .run = run,
};
