/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl: finds the subcommand and hands over. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/debug.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/manual.h"

static const struct command *const commands[] = {
    &cmd_record, &cmd_runs,   &cmd_show,   &cmd_rm,      &cmd_gc,     &cmd_query,   &cmd_sql,
    &cmd_calls,  &cmd_top,    &cmd_nlr,    &cmd_lattice, &cmd_jsm,    &cmd_cluster, &cmd_diff,
    &cmd_rank,   &cmd_report, &cmd_export, &cmd_import,  &cmd_verify, &cmd_recover, &cmd_doctor,
    &cmd_go,     &cmd_stat,   &cmd_locks,  &cmd_cascade, &cmd_daemon,
};

const char *argp_program_version = "tracectl " TRACECTL_VERSION;

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
        if (!strcmp(commands[i]->name, name))
            return commands[i];
    return NULL;
}

/* The text behind the options of `tracectl --help`: the table of subcommands. */
static char *help_filter(int key, const char *text, void *input)
{
    char *list =
        key == ARGP_KEY_HELP_POST_DOC ? cli_list_commands(commands, ARRAY_SIZE(commands), "tracectl") : NULL;

    return list ? list : (char *)text;
}

/* Stops at the first word that is not an option: the subcommand; the rest is for its own parser. */
static error_t parse_main(int key, char *arg, struct argp_state *state)
{
    int *command_index = state->input;

    if (key == ARGP_KEY_ARG) {
        *command_index = state->next - 1;
        state->next = state->argc;
        return 0;
    }
    if (key == ARGP_KEY_NO_ARGS)
        argp_usage(state);
    return ARGP_ERR_UNKNOWN;
}

static const struct argp main_argp = {
    .parser = parse_main,
    .args_doc = "COMMAND [ARG...]",
    .doc =
        "Record which functions a program calls, without recompiling it; store, query and compare the "
        "recordings.\v",
    .children = cli_common_children,
    .help_filter = help_filter,
};

static int unknown_command(const char *name)
{
    text_print(stderr, "tracectl: unknown command '%s' (see tracectl --help)\n", name);
    return EXIT_USAGE;
}

/* The command `name` of a command, or the command itself when it has none of that name. */
static const struct command *own_command(const struct command *command, const char *name)
{
    for (size_t i = 0; command->commands && command->commands[i]; i++)
        if (!strcmp(cli_last_name(command->commands[i]), name))
            return command->commands[i];
    return command;
}

/* `tracectl help [COMMAND]`: the same as --help. `tracectl manual [COMMAND]`: troff, for the man pages. */
static int run_help(int argc, char **argv, bool manual)
{
    const struct command *command = argc > 1 ? find_command(argv[1]) : NULL;
    char name[64];

    if (argc > 1 && !command)
        return unknown_command(argv[1]);
    if (argc > 2 && !manual)
        command = own_command(command, argv[2]);
    snprintf(name, sizeof(name), "tracectl %s", command ? command->name : "");
    if (manual && command)
        manual_command(stdout, command);
    else if (manual)
        manual_overview(stdout, &main_argp, commands, ARRAY_SIZE(commands));
    else if (command)
        argp_help(command->argp, stdout, ARGP_HELP_STD_HELP & ~ARGP_HELP_EXIT_OK, name);
    else
        argp_help(&main_argp, stdout, ARGP_HELP_STD_HELP & ~ARGP_HELP_EXIT_OK, (char *)"tracectl");
    return fflush(stdout) ? EXIT_FAILED : EXIT_NOTHING_FOUND;
}

int main(int argc, char **argv)
{
    const struct command *command;
    const char *environment = getenv("TRACECTL_DB"), *logged = getenv("TRACECTL_DEBUG");
    char name[64], tool[] = "tracectl";
    int index = 0;

    argv[0] = tool; /* what getopt begins its messages with */
    argp_err_exit_status = EXIT_USAGE;
    cli.store_path = environment && *environment ? environment : "tracectl.db";
    if (logged && *logged)
        debug_start(logged);
    if (argp_parse(&main_argp, argc, argv, ARGP_IN_ORDER, NULL, &index) || !index)
        return EXIT_USAGE;
    if (!strcmp(argv[index], "help") || !strcmp(argv[index], "manual"))
        return run_help(argc - index, argv + index, argv[index][0] == 'm');
    command = find_command(argv[index]);
    if (!command)
        return unknown_command(argv[index]);
    snprintf(name, sizeof(name), "tracectl %s", command->name);
    argv[index] = name;
    return command->run(argc - index, argv + index);
}
