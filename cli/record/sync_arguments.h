/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The options of `tracectl record` about synchronisation: --sync, and what functions mean to it. */
#ifndef TRACECTL_CLI_RECORD_SYNC_ARGUMENTS_H
#define TRACECTL_CLI_RECORD_SYNC_ARGUMENTS_H

#include <argp.h>

/* Parses into a struct record_arguments. */
extern const struct argp sync_argp;

#endif
