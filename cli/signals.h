/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What Ctrl-C and its kind do while something is recorded. */
#ifndef TRACECTL_CLI_SIGNALS_H
#define TRACECTL_CLI_SIGNALS_H

#include <stdbool.h>

#include "collector/recorder.h"

/* SIGINT, SIGTERM and SIGHUP stop this recorder from now on (NULL: signals_came() says so, and no more).
 * Ctrl-C goes to the command as well, which may end by it or not: `with_command`, only a second one is for
 * us. */
void signals_stop(struct recorder *recorder, bool with_command);

/* SIGUSR1 asks the recorder of signals_stop for a commit from now on; before that it does nothing. */
void signals_commit(void);

/* They do nothing any more: what is left to do is short and must not be cut off. */
void signals_ignore(void);

/* Whether one of them has come since signals_stop. */
bool signals_came(void);

#endif
