/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl query "SQL": one statement over the catalog, the virtual tables and the views, read only. */
#include <errno.h>

#include "base/error.h"
#include "cli/common/command.h"
#include "cli/common/output.h"
#include "cli/sql/sql_output.h"

struct query_input {
    const char *sql;
    bool csv;
    struct statement_guard guard;
};

enum { KEY_TIMEOUT = 0x100 };

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct query_input *input = state->input;

    switch (key) {
    case 'c':
        input->csv = true;
        return 0;
    case KEY_TIMEOUT:
        input->guard.limit_ns = sql_parse_timeout(arg, state);
        return 0;
    case ARGP_KEY_ARG:
        if (input->sql)
            argp_error(state, "query takes one statement (quote it)");
        input->sql = arg;
        return 0;
    case ARGP_KEY_END:
        if (!input->sql)
            argp_error(state, "query needs an SQL statement");
        if (input->csv && cli.json)
            argp_error(state, "--csv and --json cannot be combined");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {
    {"csv", 'c', 0, 0, "Print comma-separated values, with a header line", 0},
    SQL_TIMEOUT_OPTION(KEY_TIMEOUT),
    {0},
};
static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "SQL",
    .doc =
        "Run one read-only SQL statement on the store.\vTables: runs, processes, threads, functions, "
        "segments, losses, blind and more; events, calls and loops are decoded while they are read; "
        "function_names finds functions by parts of their names; views: call_counts, call_graph, "
        "open_calls. docs/sql.md describes them. With --json the rows are an array of objects. For an "
        "interactive shell see 'tracectl sql'.",
    .children = cli_common_children,
};

static int prepare(sqlite3 *db, struct query_input *input, sqlite3_stmt **ret_statement, struct error *err)
{
    AUTO_STATEMENT *statement = NULL, *second = NULL;
    const char *rest;
    int code = sql_prepare(db, &input->guard, input->sql, &statement, &rest, err);

    if (code == 0)
        code = sql_prepare(db, &input->guard, rest, &second, &rest, err);
    if (code < 0)
        return code;
    if (second)
        return error_say(err, -EINVAL, "query: more than one statement (run them one by one)");
    if (!statement)
        return error_say(err, -EINVAL, "query: no statement");
    *ret_statement = take_pointer(statement);
    return 0;
}

static void release_input(struct query_input *input)
{
    statement_guard_release(&input->guard);
}

static int run(int argc, char **argv)
{
    CLEANUP(release_input) struct query_input input = {.guard.limit_ns = SQL_TIMEOUT_NS};
    AUTO_STORE struct tracestore *store = NULL;
    AUTO_STATEMENT *statement = NULL;
    struct error err = {0};
    int r;

    cli_parse(&cmd_query, argc, argv, &input);
    if (sql_open(&store, &input.guard, &err) < 0 ||
        prepare(tracestore_db(store), &input, &statement, &err) < 0)
        return cli_fail(&err);
    r = sql_print(statement, cli.json ? SQL_JSON : input.csv ? SQL_CSV : SQL_TABLE);
    if (r != SQLITE_DONE && !cli_output_broken()) {
        fflush(stdout);
        sql_fail(tracestore_db(store), &input.guard, &err);
        return cli_fail(&err);
    }
    return cli_finish(EXIT_NOTHING_FOUND);
}

const struct command cmd_query = {
    .name = "query",
    .summary = "run a read-only SQL statement",
    .argp = &argp,
    .examples =
        "List the ten most-called functions of run 1:\n"
        "  tracectl query \"SELECT name, sum(calls) AS calls FROM call_counts\n"
        "    WHERE run_id = 1 GROUP BY name ORDER BY calls DESC LIMIT 10\"\n"
        "Export the calls of thread 0.0 as CSV:\n"
        "  tracectl query --csv \"SELECT c.* FROM calls c JOIN threads t\n"
        "    USING (thread_id) WHERE t.run_id = 1 AND t.label = '0.0'\" > calls.csv\n",
    .run = run,
};
