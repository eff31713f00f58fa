/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is being done, on standard error: one line that is written anew, while that is a terminal and -q was not
 * given. With -v each step is a line of its own, with the seconds since the beginning, and stays, on a terminal
 * or not.
 */
#ifndef TRACECTL_CLI_COMMON_PROGRESS_LINE_H
#define TRACECTL_CLI_COMMON_PROGRESS_LINE_H

#include <stdint.h>

/* Shows reports (base/progress.h) from now on: the first after `quiet_ns`, later ones as they come, five times
 * a second at most. May be called again after progress_line_end(): -v keeps
 * counting from the first call. */
void progress_line_begin(uint64_t quiet_ns);

/* Removes the line, before something else is printed. The next report shows it again. */
void progress_line_clear(void);

/* Removes the line; reports are shown only as the lines of -v, since another program writes to the terminal. */
void progress_line_leave_terminal(void);

/* Removes the line; reports are no longer shown. */
void progress_line_end(void);

#endif
