/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The commands of `tracectl go`: one file each, cli/go_NAME.c, which ends in a `const struct command
 * go_NAME`. To add one: declare its struct below and add it to the table in cmd_go.c.
 */
#ifndef TRACECTL_CLI_GO_GO_COMMANDS_H
#define TRACECTL_CLI_GO_GO_COMMANDS_H

#include "cli/common/command.h"

extern const struct command go_check_command, go_coverage_command, go_locks_command, go_layout_command,
    go_explore_command, go_model_command, go_timeline_command, go_tree_command;

/* The parser of a command whose one argument is the path of a program; state->input begins with a `const char
 * *`, which it is put into. Options of its own go to the caller's parser: ARGP_ERR_UNKNOWN. */
error_t go_parse_binary(int key, char *arg, struct argp_state *state);

#endif
