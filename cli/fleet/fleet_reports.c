/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl fleet runs, top, query: what the database answers itself. */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "cli/common/output.h"
#include "cli/fleet/fleet_commands.h"

/* Runs one statement that reads, and prints its rows. */
static int report(const struct fleet_arguments *arguments, const char *sql, int count,
                  const char *const *values)
{
    struct fleet fleet;
    struct error err = {0};
    PGresult *result = NULL;
    int code = fleet_connect(arguments->url, &fleet, &err);

    if (code)
        return cli_fail(&err);
    code = fleet_execute(&fleet, "cannot read the fleet", &err, "BEGIN READ ONLY");
    if (!code)
        code = fleet_query(&fleet, "query", &result, &err, sql, count, values);
    if (!code)
        fleet_print(result);
    PQclear(result);
    fleet_close(&fleet);
    return code ? cli_fail(&err) : cli_finish(EXIT_NOTHING_FOUND);
}

/* ------------------------------------------------------------------------------------------ runs */

/* At most one name. */
static error_t parse_name(int key, char *arg, struct argp_state *state)
{
    const struct fleet_arguments *arguments = state->input;

    if (key == ARGP_KEY_ARG && arguments->count)
        argp_error(state, "unexpected argument '%s' (name one run)", arg);
    return fleet_parse_words(key, arg, state);
}

static const struct argp runs_argp = {
    .parser = parse_name,
    .args_doc = "[NAME]",
    .doc = "List the runs of the fleet, the newest first.\vWith NAME only the runs of that name.",
    .children = fleet_children,
};

#define TIME_SQL(ns) \
    "to_char(to_timestamp(" ns " / 1e9) AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')"

static int run_runs(int argc, char **argv)
{
    struct fleet_arguments arguments = {0};
    int status;

    cli_parse(&fleet_runs_command, argc, argv, &arguments);
    status = report(&arguments,
                    "SELECT run_id AS run, host, name, " TIME_SQL("started_ns") " AS started, threads, events, lost, complete,"
                    " stored_bytes, exit_status, command FROM tracectl.runs WHERE $1::text IS NULL OR name = $1"
                    " ORDER BY started_ns DESC, run_id DESC",
                    1, (const char *[]){arguments.count ? arguments.words[0] : NULL});
    free(arguments.words);
    return status;
}

const struct command fleet_runs_command = {
    .name = "fleet runs",
    .summary = "list the runs of the fleet",
    .argp = &runs_argp,
    .examples =
        "List the runs of one name on all hosts, as JSON:\n"
        "  tracectl --json fleet runs nightly\n",
    .run = run_runs,
};

/* ------------------------------------------------------------------------------------------ top */

static const struct argp top_argp = {
    .parser = parse_name,
    .args_doc = "[NAME]",
    .doc =
        "The functions that the runs of the fleet call most: how often in all, on how many hosts and in how many runs.\vWith "
        "NAME only the runs of that name. The first 100 functions are listed.",
    .children = fleet_children,
};

static int run_top(int argc, char **argv)
{
    struct fleet_arguments arguments = {0};
    int status;

    cli_parse(&fleet_top_command, argc, argv, &arguments);
    status = report(
        &arguments,
        "SELECT coalesce(f.demangled, f.name) AS function, i.path AS image, sum(calls)::bigint AS calls,"
        " count(DISTINCT host) AS hosts, count(DISTINCT run_id) AS runs FROM tracectl.run_functions"
        " JOIN tracectl.runs r USING (run_id) JOIN tracectl.functions f USING (function_id)"
        " JOIN tracectl.images i ON i.image_id = f.image_id WHERE ($1::text IS NULL OR r.name = $1) AND calls > 0"
        " GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT 100",
        1, (const char *[]){arguments.count ? arguments.words[0] : NULL});
    free(arguments.words);
    return status;
}

const struct command fleet_top_command = {
    .name = "fleet top",
    .summary = "the most-called functions of all hosts",
    .argp = &top_argp,
    .examples =
        "Which functions do the runs of a name call most?\n"
        "  tracectl fleet top nightly\n",
    .run = run_top,
};

/* ------------------------------------------------------------------------------------------ query */

static error_t parse_query(int key, char *arg, struct argp_state *state)
{
    const struct fleet_arguments *arguments = state->input;

    if (key == ARGP_KEY_END && arguments->count != 1)
        argp_error(state, "query needs one statement");
    return fleet_parse_words(key, arg, state);
}

static const struct argp query_argp = {
    .parser = parse_query,
    .args_doc = "SQL",
    .doc =
        "Run one SQL statement on the fleet's database, in a transaction that only reads.\vThe tables are in the schema "
        "tracectl (docs/fleet.md).",
    .children = fleet_children,
};

static int run_query(int argc, char **argv)
{
    struct fleet_arguments arguments = {0};
    int status;

    cli_parse(&fleet_query_command, argc, argv, &arguments);
    status = report(&arguments, arguments.words[0], 0, NULL);
    free(arguments.words);
    return status;
}

const struct command fleet_query_command = {
    .name = "fleet query",
    .summary = "run one SQL statement on the fleet",
    .argp = &query_argp,
    .examples =
        "How many events has each host?\n"
        "  tracectl fleet query \"SELECT host, sum(events) FROM tracectl.runs GROUP BY host\"\n",
    .run = run_query,
};
