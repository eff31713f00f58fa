/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The options of `tracectl record` that make it a flight recorder. */
#ifndef TRACECTL_CLI_RECORD_FLIGHT_ARGUMENTS_H
#define TRACECTL_CLI_RECORD_FLIGHT_ARGUMENTS_H

#include <argp.h>

struct record_arguments;

/* Parses into a struct record_arguments. Without a trigger the window is kept after a crash, and at the end.
 */
extern const struct argp flight_argp;

/* Frees the triggers. */
void flight_arguments_release(struct record_arguments *arguments);

#endif
