/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl fleet: the runs of many hosts in one PostgreSQL database. */
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "cli/fleet/fleet_commands.h"

static const struct command *const commands[] = {
    &fleet_init_command, &fleet_runs_command,   &fleet_top_command, &fleet_query_command,
    &fleet_diff_command, &fleet_verify_command, &fleet_gc_command,  NULL};

static char *help_filter(int key, const char *text, void *input)
{
    char *list = key == ARGP_KEY_HELP_POST_DOC
                     ? cli_list_commands(commands, ARRAY_SIZE(commands) - 1, "tracectl fleet")
                     : NULL;

    return list ? list : (char *)text;
}

static const struct argp argp = {
    .parser = cli_parse_group,
    .args_doc = "COMMAND [ARG...]",
    .doc = "Ask and compare the runs of many hosts, which are in one PostgreSQL database.\v",
    .children = cli_common_children,
    .help_filter = help_filter,
};

static int run(int argc, char **argv)
{
    return cli_run_group(&cmd_fleet, argc, argv);
}

const struct command cmd_fleet = {
    .name = "fleet",
    .summary = "the runs of many hosts in one PostgreSQL database",
    .argp = &argp,
    .examples =
        "Create the schema, add the runs of this host, and list what the fleet has:\n"
        "  export TRACECTL_FLEET=postgresql://db.example/traces\n"
        "  tracectl fleet init\n"
        "  tracectl ship\n"
        "  tracectl fleet runs\n",
    .argp_flags = ARGP_IN_ORDER,
    .run = run,
    .commands = commands,
};
