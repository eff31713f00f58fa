/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl fleet gc: deletes old runs. */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/common/output.h"
#include "cli/fleet/fleet_commands.h"

enum { KEY_AGE = 0x100 };

struct gc_arguments {
    struct fleet_arguments fleet; /* first: fleet_parse_words() takes it for the whole */
    uint64_t age_ns;              /* 0: not given */
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct gc_arguments *arguments = state->input;

    switch (key) {
    case KEY_AGE:
        arguments->age_ns = cli_parse_duration(state, "--keep-age", arg, 1000000000);
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "unexpected argument '%s'", arg);
        return EINVAL;
    case ARGP_KEY_END:
        if (!arguments->age_ns)
            argp_error(state, "gc needs --keep-age");
        return 0;
    default:
        return fleet_parse_words(key, arg, state);
    }
}

static const struct argp_option options[] = {
    {"keep-age", KEY_AGE, "TIME", 0, "Delete the runs that ended longer ago than this: 30m, 12h, or seconds",
     2},
    {0},
};
static const struct argp argp = {
    .options = options,
    .parser = parse,
    .doc =
        "Delete old runs of the fleet, and the functions that no run has any more.\vA run that is deleted here and still in the "
        "store of its host is shipped again by the next 'tracectl ship'.",
    .children = fleet_children,
};

/* Functions only where nobody adds runs meanwhile that name them. */
static int collect(struct fleet *fleet, uint64_t before_ns, char *deleted, size_t size, struct error *err)
{
    static const char what[] = "cannot delete runs of the fleet";
    PGresult *result = NULL;
    char before[24];
    int code =
        fleet_execute(fleet, what, err, "BEGIN; LOCK TABLE tracectl.functions IN SHARE ROW EXCLUSIVE MODE");

    snprintf(before, sizeof(before), "%llu", (unsigned long long)before_ns);
    if (!code)
        code = fleet_query(fleet, what, &result, err,
                           "DELETE FROM tracectl.runs WHERE coalesce(ended_ns, started_ns) < $1", 1,
                           (const char *[]){before});
    if (!code)
        snprintf(deleted, size, "%s", PQcmdTuples(result));
    PQclear(result);
    if (!code)
        code = fleet_execute(
            fleet, what, err,
            "DELETE FROM tracectl.functions f WHERE NOT EXISTS (SELECT 1 FROM tracectl.run_functions r"
            " WHERE r.function_id = f.function_id)");
    return code ? code : fleet_execute(fleet, what, err, "COMMIT");
}

static int run(int argc, char **argv)
{
    struct gc_arguments arguments = {0};
    struct fleet fleet;
    struct error err = {0};
    char deleted[24] = "0";
    int code;

    cli_parse(&fleet_gc_command, argc, argv, &arguments);
    code = fleet_connect(arguments.fleet.url, &fleet, &err);
    if (code)
        return cli_fail(&err);
    code = collect(&fleet, clock_ns(CLOCK_REALTIME) - arguments.age_ns, deleted, sizeof(deleted), &err);
    fleet_close(&fleet);
    if (code)
        return cli_fail(&err);
    if (cli.json)
        text_print(stdout, "{\"deleted_runs\": %s}\n", deleted);
    else if (cli.verbosity >= 0)
        text_print(stdout, "runs deleted: %s\n", deleted);
    return cli_finish(EXIT_NOTHING_FOUND);
}

const struct command fleet_gc_command = {
    .name = "fleet gc",
    .summary = "delete old runs of the fleet",
    .argp = &argp,
    .examples =
        "Keep two weeks:\n"
        "  tracectl fleet gc --keep-age 336h\n",
    .run = run,
};
