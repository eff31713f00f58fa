/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What `locks` and `go locks` have in common: one run is read, and its potential deadlocks are printed, as text
 * while they are found, or as one JSON document. */
#ifndef TRACECTL_CLI_ANALYSIS_LOCK_REPORT_H
#define TRACECTL_CLI_ANALYSIS_LOCK_REPORT_H

#include <argp.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/common/command.h"

struct error;

struct lock_report {
    json_t *cycles; /* NULL: as text */
    size_t count;
    bool complete; /* all orders of locks were looked at */
};

/* The parser of an argp whose input is a `const char *`: one run. */
error_t lock_report_parse(int key, char *arg, struct argp_state *state);

/* Parses the command line, calls `read` with the run's name, and ends the report; `incomplete` says why it
 * may not be complete. Returns the exit status. */
int lock_report_run(const struct command *command, int argc, char **argv,
                    int (*read)(const char *run, struct lock_report *report, struct error *err),
                    const char *incomplete);

/* The line above the steps of a cycle. */
void lock_report_heading(bool happened);

/* A lock that is taken or held, with the place where. NULL: no memory. */
json_t *lock_report_json(uint64_t object, bool shared, const char *function, const char *file, int line);

#endif
