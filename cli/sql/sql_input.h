/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The lines that `tracectl sql` reads: on a terminal with editing, history and completion (libedit), else as
 * they come.
 */
#ifndef TRACECTL_CLI_SQL_SQL_INPUT_H
#define TRACECTL_CLI_SQL_SQL_INPUT_H

#include <stdbool.h>

#include "cli/sql/sql_names.h"

struct error;

struct sql_input;

/* Reads standard input. `names`, which must outlive the input, are what TAB completes. Free with
 * sql_input_free, which accepts NULL. */
int sql_input_new(const struct sql_names *names, struct sql_input **ret_input, struct error *err);
void sql_input_free(struct sql_input *input);

bool sql_input_is_terminal(const struct sql_input *input);

enum sql_line { SQL_LINE_READ, SQL_LINE_END, SQL_LINE_CANCELLED /* Ctrl-C */ };

/* Reads a line, with its newline if it has one, valid until the next. `goes_on` chooses the prompt of a
 * statement that has begun. */
enum sql_line sql_input_read(struct sql_input *input, bool goes_on, const char **ret_line);

/* Puts what was entered into the history, as one line, and saves that in the file
 * $XDG_STATE_HOME/tracectl/sql_history (~/.local/state/...), if there can be one. */
void sql_input_remember(struct sql_input *input, const char *text);

#endif
