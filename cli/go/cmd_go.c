/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl go: what concerns Go programs, as commands of its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "cli/go/go_commands.h"

static const struct command *const commands[] = {
    &go_check_command,    &go_explore_command, &go_tree_command,
    &go_timeline_command, &go_model_command,   &go_coverage_command,
    &go_locks_command,    &go_layout_command,  NULL};

/* The list of commands, behind the options of `tracectl go --help`. */
static char *help_filter(int key, const char *text, void *input)
{
    char *list = key == ARGP_KEY_HELP_POST_DOC
                     ? cli_list_commands(commands, ARRAY_SIZE(commands) - 1, "tracectl go")
                     : NULL;

    return list ? list : (char *)text;
}

error_t go_parse_binary(int key, char *arg, struct argp_state *state)
{
    const char **binary = state->input;

    switch (key) {
    case ARGP_KEY_ARG:
        if (*binary)
            argp_error(state, "unexpected argument '%s' (name one program)", arg);
        *binary = arg;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "no program given (name an executable built by Go)");
        return EINVAL;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .parser = cli_parse_group,
    .args_doc = "COMMAND [ARG...]",
    .doc = "Analyse Go programs without source or rebuild, stripped or not.\v",
    .children = cli_common_children,
    .help_filter = help_filter,
};

static int run(int argc, char **argv)
{
    return cli_run_group(&cmd_go, argc, argv);
}

const struct command cmd_go = {
    .name = "go",
    .summary = "analyse Go programs: goroutines, channels, locks",
    .argp = &argp,
    .examples =
        "Check a Go program for leaked goroutines and deadlocks:\n"
        "  tracectl go check -- ./server\n"
        "Check the tests of a module:\n"
        "  go test -exec 'tracectl go check --' ./...\n"
        "Search for bugs that need a rare schedule:\n"
        "  tracectl go explore --runs 100 -- ./server.test\n",
    .argp_flags = ARGP_IN_ORDER,
    .run = run,
    .commands = commands,
};
