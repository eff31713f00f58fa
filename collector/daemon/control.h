/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The daemon's local socket: a client sends one word and a line feed, and is sent a text. */
#ifndef TRACECTL_COLLECTOR_DAEMON_CONTROL_H
#define TRACECTL_COLLECTOR_DAEMON_CONTROL_H

#include <stdbool.h>

struct error;

/* Binds and listens; the socket is its owner's alone (0600). One that a dead daemon has left is taken away.
 * -EADDRINUSE: a daemon listens there. Returns the descriptor. */
int control_listen(const char *path, struct error *err);

/* Accepts one client and answers it with what `answer` makes of its word, in memory from malloc (NULL:
 * nothing). Clients of other users than root and the daemon's own are sent nothing; false: such a one. Slow
 * clients are dropped after a fifth of a second. */
bool control_serve(int listener, char *(*answer)(void *context, const char *word), void *context);

/* What the daemon that listens on `path` answers; the caller frees it. */
int control_ask(const char *path, const char *word, char **ret_answer, struct error *err);

#endif
