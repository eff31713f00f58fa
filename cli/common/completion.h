/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `tracectl __complete WORD...`, which the completion scripts of shells call (tools/completion). The words are those
 * of the command line behind "tracectl"; the last one is the one to complete and may be empty. Options come from
 * the same argp tables as --help.
 *
 * It prints a line for each candidate: the word, and after a tab what it means, where there is more to say. A last
 * line may ask the shell for its own completion: ":files" or ":commands".
 */
#ifndef TRACECTL_CLI_COMMON_COMPLETION_H
#define TRACECTL_CLI_COMMON_COMPLETION_H

#include "cli/common/command.h"

/* Prints the candidates for the last of `count` words. `argp` is tracectl's own, `commands` its commands, NULL at
 * the end. Returns the exit status. */
int completion_print(const struct argp *argp, const struct command *const *commands, char *const *words,
                     size_t count);

/* The values of arguments: those of `metavariable` (as --help names it: "FILE", "auto|inline", "RUN") that begin
 * with `begin`. `before` is put in front of each, as in --backend=auto. */
void completion_print_values(const char *metavariable, const char *before, const char *begin);

#endif
