/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl: finds the subcommand and hands over. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/debug.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/completion.h"
#include "cli/common/manual.h"
#include "cli/common/suggestion.h"

static const struct command *const commands[] = {
    &cmd_record,  &cmd_runs,   &cmd_show,   &cmd_rm,     &cmd_gc,      &cmd_query,   &cmd_sql,
    &cmd_calls,   &cmd_top,    &cmd_slow,   &cmd_nlr,    &cmd_lattice, &cmd_jsm,     &cmd_cluster,
    &cmd_diff,    &cmd_rank,   &cmd_report, &cmd_export, &cmd_import,  &cmd_merge,   &cmd_verify,
    &cmd_recover, &cmd_doctor, &cmd_go,     &cmd_stat,   &cmd_locks,   &cmd_cascade, &cmd_daemon,
    &cmd_ship,    &cmd_pull,   &cmd_fleet,  &cmd_serve,  NULL,
};
enum { COMMAND_COUNT = ARRAY_SIZE(commands) - 1 };

const char *argp_program_version = "tracectl " TRACECTL_VERSION;

static const char examples[] =
    "Record a command, list its runs, and describe the newest one:\n"
    "  tracectl record -- ./app\n"
    "  tracectl runs\n"
    "  tracectl show latest\n"
    "Compare a good run with a bad one:\n"
    "  tracectl record -n good -- ./app input1\n"
    "  tracectl record -n bad -- ./app input2\n"
    "  tracectl diff good bad\n"
    "Show where a hanging process is:\n"
    "  tracectl stat -p app\n";

/* The text behind the options of `tracectl --help`: the table of subcommands, and examples. */
static char *help_filter(int key, const char *text, void *input)
{
    AUTO_FREE char *list = NULL;
    char *all = NULL;

    if (key != ARGP_KEY_HELP_POST_DOC)
        return (char *)text;
    list = cli_list_commands(commands, COMMAND_COUNT, "tracectl");
    return list && asprintf(&all, "%s\nExamples:\n%s", list, examples) >= 0 ? all : (char *)text;
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

/* "go check", "go-check" and "go" "check" name the same. NULL: there is none. */
static const struct command *find_command(char *name, const char *own_name)
{
    char *dash = own_name ? NULL : strchr(name, '-');
    const struct command *command;
    size_t count = 0;

    if (dash)
        *dash = '\0';
    command = cli_find_command(commands, COMMAND_COUNT, name);
    own_name = dash ? dash + 1 : own_name;
    if (!command || !own_name || !command->commands)
        return command && !dash ? command : NULL;
    while (command->commands[count])
        count++;
    return cli_find_command(command->commands, count, own_name);
}

/* `tracectl help [COMMAND]`: the same as --help. `tracectl manual [COMMAND]`: troff, for the man pages. */
static int run_help(int argc, char **argv, bool manual)
{
    const struct command *command = argc > 1 ? find_command(argv[1], argc > 2 ? argv[2] : NULL) : NULL;

    if (argc > 1 && !command)
        return cli_unknown_command(commands, COMMAND_COUNT, "", argv[argc - 1]);
    if (manual && command)
        manual_command(stdout, command);
    else if (manual)
        manual_overview(stdout, &main_argp, examples, commands, COMMAND_COUNT);
    else if (command)
        cli_help(command);
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
    suggestion_check_options(&main_argp, ARGP_IN_ORDER, argc, argv);
    if (argp_parse(&main_argp, argc, argv, ARGP_IN_ORDER, NULL, &index) || !index)
        return EXIT_USAGE;
    if (!strcmp(argv[index], "help") || !strcmp(argv[index], "manual"))
        return run_help(argc - index, argv + index, argv[index][0] == 'm');
    if (!strcmp(argv[index], "__complete"))
        return completion_print(&main_argp, commands, argv + index + 1, (size_t)(argc - index - 1));
    if (!strcmp(argv[index], "version"))
        return text_print(stdout, "%s\n", argp_program_version) < 0 || fflush(stdout) ? EXIT_FAILED
                                                                                      : EXIT_NOTHING_FOUND;
    command = cli_find_command(commands, COMMAND_COUNT, argv[index]);
    if (!command)
        return cli_unknown_command(commands, COMMAND_COUNT, "", argv[index]);
    snprintf(name, sizeof(name), "tracectl %s", command->name);
    argv[index] = name;
    return command->run(argc - index, argv + index);
}
