/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A subcommand is one file, cmd_NAME.c, that ends in a `const struct command cmd_NAME`.
 *
 * To add one: write cli/cmd_NAME.c, declare its struct below, add it to the table in main.c, and describe it
 * in the `argp` it points to: --help and the man page tracectl-NAME(1) are both made from that.
 *
 * Common options (-d, --json, -q, -v) are accepted before and behind the subcommand's name: give the
 * subcommand's argp cli_common_children as its children, or &cli_common_argp as one of them.
 */
#ifndef TRACECTL_CLI_COMMON_COMMAND_H
#define TRACECTL_CLI_COMMON_COMMAND_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct error;

/* Exit statuses (docs: "exit status" in tracectl(1)). */
enum {
    EXIT_NOTHING_FOUND = 0,
    EXIT_FOUND = 1, /* a difference, a leak, a deadlock, a damaged segment */
    EXIT_USAGE = 2,
    EXIT_FAILED = 3, /* could not be done */
};

struct cli {
    const char *store_path;
    bool json;
    int verbosity; /* -1 with -q, 1 with -v */
};

/* The one set of common options, filled before a subcommand runs and by its own command line. */
extern struct cli cli;
extern const struct argp cli_common_argp;
extern const struct argp_child cli_common_children[]; /* that one alone */

struct command {
    const char *name;                  /* of a command's command "go model" */
    const char *summary;               /* a line for `tracectl help` and the man page */
    const struct argp *argp;           /* options, arguments, text */
    const char *examples;              /* lines for --help and the man page; commands begin with two spaces */
    unsigned argp_flags;               /* for argp_parse */
    int (*run)(int argc, char **argv); /* argv[0] is "tracectl NAME"; returns the exit status */
    const struct command *const *commands; /* its own commands, NULL at the end; NULL: it has none */
};

/* The last word of a command's name. */
static inline const char *cli_last_name(const struct command *command)
{
    const char *space = strrchr(command->name, ' ');

    return space ? space + 1 : command->name;
}

extern const struct command cmd_calls, cmd_cascade, cmd_cluster, cmd_daemon, cmd_diff, cmd_doctor, cmd_export,
    cmd_fleet, cmd_gc, cmd_go, cmd_import, cmd_jsm, cmd_lattice, cmd_locks, cmd_nlr, cmd_query, cmd_rank,
    cmd_record, cmd_merge, cmd_pull, cmd_recover, cmd_report, cmd_rm, cmd_runs, cmd_serve, cmd_ship, cmd_show,
    cmd_slow, cmd_sql, cmd_stat, cmd_top, cmd_verify;

/* "Commands:" and a line for each, for the --help of `program`, in memory from malloc; NULL: none left. */
char *cli_list_commands(const struct command *const *list, size_t count, const char *program);

/* The one of `list` with this last name. NULL: there is none. */
const struct command *cli_find_command(const struct command *const *list, size_t count, const char *name);

/* Prints "unknown command", with a similar name of `list` where there is one, and returns EXIT_USAGE.
 * `before` is what the command line had before the name: "" or "go ". */
int cli_unknown_command(const struct command *const *list, size_t count, const char *before,
                        const char *name);

/* The parser of a command that only has commands of its own: it stops at the first word that is not an option; state->input
 * is an int, which becomes that word's index. */
error_t cli_parse_group(int key, char *arg, struct argp_state *state);

/* The run() of such a command: that of the one of `group->commands` which the command line names. */
int cli_run_group(const struct command *group, int argc, char **argv);

/* Prints the --help of a command on stdout. */
void cli_help(const struct command *command);

/* Prints the error line on stderr and returns EXIT_FAILED. */
int cli_fail(const struct error *err);

/* Parses a subcommand's command line with its argp; ends the process with EXIT_USAGE on a usage error.
 * `input` goes to the parser (state->input). */
void cli_parse(const struct command *command, int argc, char **argv, void *input);

/* The number that an option's argument is; a usage error when it is none from `low` to `high`. */
unsigned long cli_parse_number(const struct argp_state *state, const char *option, const char *text,
                               unsigned long low, unsigned long high);

/* The time that an option's argument is, in nanoseconds: "200ms", "30s", "5m", "1h", or a number without a
 * unit, which are seconds. A usage error when it is none, or shorter than `low_ns`, or longer than 30 years.
 */
uint64_t cli_parse_duration(const struct argp_state *state, const char *option, const char *text,
                            uint64_t low_ns);

/* The same for an option whose numbers without a unit are in `bare` seconds. */
uint64_t cli_parse_duration_in(const struct argp_state *state, const char *option, const char *text,
                               uint64_t low_ns, double bare);

/* Whether the argument that is being parsed stands behind a "--". */
static inline bool cli_is_behind_dashes(const struct argp_state *state)
{
    return state->quoted && state->next > state->quoted;
}

/* The parser of a subcommand that takes neither arguments nor options of its own. */
error_t cli_parse_no_arguments(int key, char *arg, struct argp_state *state);

#endif
