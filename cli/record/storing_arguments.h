/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The options of `tracectl record` about how events come into the store: buffers, memory, a full disk. */
#ifndef TRACECTL_CLI_RECORD_STORING_ARGUMENTS_H
#define TRACECTL_CLI_RECORD_STORING_ARGUMENTS_H

#include <argp.h>

/* Parses into a struct record_arguments. */
extern const struct argp storing_argp;

#endif
