/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl fleet: the runs of many hosts in one PostgreSQL database. */
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "cli/fleet/fleet_commands.h"

static const struct command *const commands[] = {
    &fleet_init_command, &fleet_runs_command,   &fleet_top_command, &fleet_query_command,
    &fleet_diff_command, &fleet_verify_command, &fleet_gc_command,  NULL};

/* Stops at the first word that is not an option: the command; the rest is for its own parser. */
static error_t parse(int key, char *arg, struct argp_state *state)
{
    int *index = state->input;

    switch (key) {
    case ARGP_KEY_ARG:
        *index = state->next - 1;
        state->next = state->argc;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "no command given (init, runs, top, query, diff, verify or gc)");
        return EINVAL;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static char *help_filter(int key, const char *text, void *input)
{
    char *list = key == ARGP_KEY_HELP_POST_DOC
                     ? cli_list_commands(commands, ARRAY_SIZE(commands) - 1, "tracectl fleet")
                     : NULL;

    return list ? list : (char *)text;
}

static const struct argp argp = {
    .parser = parse,
    .args_doc = "COMMAND [ARG...]",
    .doc = "Ask and compare the runs of many hosts, which are in one PostgreSQL database.\v",
    .children = cli_common_children,
    .help_filter = help_filter,
};

static int run(int argc, char **argv)
{
    const struct command *command;
    char name[64];
    int index = 0;

    cli_parse(&cmd_fleet, argc, argv, &index);
    command = cli_find_command(commands, ARRAY_SIZE(commands) - 1, argv[index]);
    if (!command)
        return cli_unknown_command(commands, ARRAY_SIZE(commands) - 1, "fleet ", argv[index]);
    snprintf(name, sizeof(name), "tracectl %s", command->name);
    argv[index] = name;
    return command->run(argc - index, argv + index);
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
