/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The commands of `tracectl fleet`, one file each, and what they share with `ship` and `pull`. */
#ifndef TRACECTL_CLI_FLEET_FLEET_COMMANDS_H
#define TRACECTL_CLI_FLEET_FLEET_COMMANDS_H

#include "cli/common/command.h"
#include "collector/fleet/fleet.h"

extern const struct command fleet_init_command, fleet_runs_command, fleet_top_command, fleet_query_command,
    fleet_diff_command, fleet_verify_command, fleet_gc_command;

/* What most of them take: the fleet and some runs of it, or other words. */
struct fleet_arguments {
    const char *url;
    const char **words;
    size_t count, capacity;
};

/* -t URL into a `const char *`: a child argp, whose input the parent sets. */
extern const struct argp fleet_address_argp;

/* The parser of a command that takes only -t and words. state->input is a struct fleet_arguments. */
error_t fleet_parse_words(int key, char *arg, struct argp_state *state);
extern const struct argp_child fleet_children[];

/* The URL of -t (NULL: none), or of $TRACECTL_FLEET. -EINVAL: neither is given. */
int fleet_address(const char *url, const char **ret_url, struct error *err);

/* Connects to the fleet of -t, or of $TRACECTL_FLEET. */
int fleet_connect(const char *url, struct fleet *ret_fleet, struct error *err);

/* The run of the fleet that a word names: its number, "latest", or a name, of which the newest is meant. -ENOENT. */
int fleet_find_run(struct fleet *fleet, const char *word, int64_t *ret_run, struct error *err);

/* Prints a result: a table, or for --json an array of objects. Columns whose types are numbers are numbers. */
void fleet_print(const PGresult *result);

#endif
