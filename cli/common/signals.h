/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What Ctrl-C and its kind do while something is recorded. */
#ifndef TRACECTL_CLI_COMMON_SIGNALS_H
#define TRACECTL_CLI_COMMON_SIGNALS_H

#include <stdbool.h>

#include "collector/recording/recorder.h"

/* From now on SIGINT, SIGTERM and SIGHUP stop this recorder (NULL: signals_came() says so, and no more).
 *
 * `with_command`: the recorder launches commands. The first of these signals, or SIGQUIT, is passed on to
 * them unless they have it already, and their ends are recorded; another one, a moment later, stops the
 * recorder. What is ignored stays ignored then, as nohup wants it; without a command a signal is the only way
 * to end a recording, and only SIGHUP stays ignored.
 *
 * A command that is launched later has the dispositions that this process began with. */
void signals_stop(struct recorder *recorder, bool with_command);

/* SIGUSR1 asks the recorder of signals_stop for a commit from now on; before that it does nothing. */
void signals_commit(void);

/* They do nothing any more: what is left to do is short and must not be cut off. No command may be launched
 * after this. */
void signals_ignore(void);

/* Whether one of them has come since signals_stop. */
bool signals_came(void);

/* The signal that stopped the recorder; 0: none has. */
int signals_stopped_by(void);

#endif
