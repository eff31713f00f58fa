/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl fleet init: the schema. */
#include <errno.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/common/output.h"
#include "cli/fleet/fleet_commands.h"

static error_t parse(int key, char *arg, struct argp_state *state)
{
    if (key == ARGP_KEY_ARG)
        argp_error(state, "unexpected argument '%s'", arg);
    return fleet_parse_words(key, arg, state);
}

static const struct argp argp = {
    .parser = parse,
    .doc =
        "Create the schema 'tracectl' in the database; nothing is changed if it is there.\vNeeds PostgreSQL 15 or newer, a "
        "database with the encoding UTF8, and the right to create a schema. Grant other users USAGE on the schema and SELECT on "
        "its tables to read the fleet, INSERT as well to ship.",
    .children = fleet_children,
};

static int run(int argc, char **argv)
{
    struct fleet_arguments arguments = {0};
    struct fleet fleet;
    struct error err = {0};
    int code;

    cli_parse(&fleet_init_command, argc, argv, &arguments);
    if (fleet_address(arguments.url, &arguments.url, &err) || fleet_open(arguments.url, &fleet, &err))
        return cli_fail(&err);
    code = fleet_init(&fleet, &err);
    fleet_close(&fleet);
    return code ? cli_fail(&err) : cli_finish(EXIT_NOTHING_FOUND);
}

const struct command fleet_init_command = {
    .name = "fleet init",
    .summary = "create the schema in a database",
    .argp = &argp,
    .examples =
        "Create a fleet in a database of this host:\n"
        "  createdb traces\n"
        "  tracectl fleet init -t postgresql:///traces\n",
    .run = run,
};
