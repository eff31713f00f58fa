/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The options of `tracectl record` that make it a flight recorder. Each function ends with a usage error
 * where what was said cannot be. */
#ifndef TRACECTL_CLI_RECORD_FLIGHT_ARGUMENTS_H
#define TRACECTL_CLI_RECORD_FLIGHT_ARGUMENTS_H

#include "cli/record/record_arguments.h"

/* `text`: minutes, "5" or "0.5". */
void flight_arguments_set_window(struct record_arguments *arguments, const char *text,
                                 struct argp_state *state);

/* `text` as in flight_trigger_parse(). */
void flight_arguments_add_trigger(struct record_arguments *arguments, const char *text,
                                  struct argp_state *state);

/* All was said: whether it goes together. Without a trigger the window is kept after a crash, and at the end.
 */
void flight_arguments_check(struct record_arguments *arguments, struct argp_state *state);

void flight_arguments_release(struct record_arguments *arguments);

#endif
