/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What an execution prints, kept in memory: of a hundred executions only that of the one with a bug is worth
 * reading. It is a file to the command, so nothing of it waits for tracectl, or for anybody else.
 */
#ifndef TRACECTL_CLI_GO_GO_OUTPUT_H
#define TRACECTL_CLI_GO_GO_OUTPUT_H

#include <stddef.h>

struct error;

/* A descriptor to write to, which the caller closes. */
int go_output_open(int *ret_fd, struct error *err);

/* Forgets what has been written. */
void go_output_clear(int fd);

/* The same when there is very much of it. To be called now and then while the command runs. */
void go_output_limit(int fd);

/* The last 64 KiB of what has been written, to be freed; "" if that is nothing. NULL: no memory. */
char *go_output_text(int fd);

#endif
