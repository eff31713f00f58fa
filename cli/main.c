/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl: finds the subcommand and hands over. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/manual.h"
#include "collector/backend/bpf_messages.h"

struct cli cli;

static const struct command *const commands[] = {
    &cmd_record, &cmd_runs,   &cmd_show,   &cmd_rm,      &cmd_gc,     &cmd_query,   &cmd_sql,
    &cmd_calls,  &cmd_top,    &cmd_nlr,    &cmd_lattice, &cmd_jsm,    &cmd_cluster, &cmd_diff,
    &cmd_rank,   &cmd_report, &cmd_export, &cmd_import,  &cmd_verify, &cmd_recover, &cmd_doctor,
    &cmd_go,     &cmd_stat,   &cmd_locks,  &cmd_cascade, &cmd_daemon,
};

const char *argp_program_version = "tracectl " TRACECTL_VERSION;

/* argp lets a hint of two lines follow each error ("Try `...' for more information"); one line is enough. */
static ssize_t write_without_hint(void *cookie, const char *text, size_t size)
{
    const char *hint = memmem(text, size, "Try `", strlen("Try `"));
    AUTO_FREE char *message = strndup(text, hint ? (size_t)(hint - text) : size);
    bool *hint_seen = cookie;

    if (!*hint_seen && message)
        text_show_lines(stderr, message);
    *hint_seen |= hint != NULL;
    return (ssize_t)size;
}

/* Where argp writes its errors; flushed when argp ends the process. */
static FILE *error_stream(void)
{
    static bool hint_seen;
    static FILE *stream;

    if (!stream)
        stream = fopencookie(&hint_seen, "w", (cookie_io_functions_t){.write = write_without_hint});
    return stream ? stream : stderr;
}

/* Why a BPF program does not load, in the words of libbpf and the kernel: "libbpf: ...". */
static void print_message(const char *text)
{
    text_show_lines(stderr, text);
}

static error_t parse_common(int key, char *arg, struct argp_state *state)
{
    switch (key) {
    case ARGP_KEY_INIT:
        state->err_stream = error_stream();
        return 0;
    case 'd':
        cli.store_path = arg;
        return 0;
    case 'j':
        cli.json = true;
        return 0;
    case 'q':
        cli.verbosity = -1;
        return 0;
    case 'v':
        cli.verbosity = 1;
        bpf_messages_show(print_message);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option common_options[] = {
    {"store", 'd', "STORE", 0, "The trace store, one SQLite file (default $TRACECTL_DB, else ./tracectl.db)",
     90},
    {"json", 'j', 0, 0, "Print one JSON document on standard output", 90},
    {"quiet", 'q', 0, 0, "Say less", 90},
    {"verbose", 'v', 0, 0, "Say more", 90},
    {0},
};

const struct argp cli_common_argp = {.options = common_options, .parser = parse_common};
const struct argp_child cli_common_children[] = {{&cli_common_argp, 0, NULL, 0}, {0}};

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
        if (!strcmp(commands[i]->name, name))
            return commands[i];
    return NULL;
}

char *cli_list_commands(const struct command *const *list, size_t count, const char *program)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);

    if (!stream)
        return NULL;
    fputs("Commands:\n", stream);
    for (size_t i = 0; i < count; i++)
        text_print(stream, "  %-10s %s\n", cli_last_name(list[i]), list[i]->summary);
    text_print(stream, "\n`%s COMMAND --help' tells the options of a command.\n", program);
    fclose(stream);
    return text;
}

/* The text behind the options of `tracectl --help`: the table of subcommands. */
static char *help_filter(int key, const char *text, void *input)
{
    char *list =
        key == ARGP_KEY_HELP_POST_DOC ? cli_list_commands(commands, ARRAY_SIZE(commands), "tracectl") : NULL;

    return list ? list : (char *)text;
}

/* Stops at the first word that is not an option: the subcommand; the rest is for its own parser. */
static error_t parse_main(int key, char *arg, struct argp_state *state)
{
    int *command_index = state->input;

    if (key == ARGP_KEY_ARG) {
        *command_index = state->next - 1;
        state->next = state->argc;
        return 0;
    }
    if (key == ARGP_KEY_NO_ARGS)
        argp_usage(state);
    return ARGP_ERR_UNKNOWN;
}

static const struct argp main_argp = {
    .parser = parse_main,
    .args_doc = "COMMAND [ARG...]",
    .doc =
        "Record which functions a program calls, without recompiling it; keep, query and compare the "
        "recordings.\v",
    .children = cli_common_children,
    .help_filter = help_filter,
};

static int unknown_command(const char *name)
{
    text_print(stderr, "tracectl: unknown command '%s' (see tracectl --help)\n", name);
    return EXIT_USAGE;
}

int cli_fail(const struct error *err)
{
    text_print(stderr, "tracectl: %s\n", err->message[0] ? err->message : "failed without saying why");
    return EXIT_FAILED;
}

void cli_parse(const struct command *command, int argc, char **argv, void *input)
{
    if (argp_parse(command->argp, argc, argv, command->argp_flags, NULL, input))
        exit(EXIT_USAGE);
}

unsigned long cli_parse_number(const struct argp_state *state, const char *option, const char *text,
                               unsigned long low, unsigned long high)
{
    char *end;
    unsigned long number;

    errno = 0;
    number = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || number < low || number > high)
        argp_error(state, "%s must be a number from %lu to %lu, not '%s'", option, low, high, text);
    return number;
}

error_t cli_parse_no_arguments(int key, char *arg, struct argp_state *state)
{
    if (key == ARGP_KEY_ARG)
        argp_usage(state);
    return ARGP_ERR_UNKNOWN;
}

/* The command `name` of a command, or the command itself when it has none of that name. */
static const struct command *own_command(const struct command *command, const char *name)
{
    for (size_t i = 0; command->commands && command->commands[i]; i++)
        if (!strcmp(cli_last_name(command->commands[i]), name))
            return command->commands[i];
    return command;
}

/* `tracectl help [COMMAND]`: the same as --help. `tracectl manual [COMMAND]`: troff, for the man pages. */
static int run_help(int argc, char **argv, bool manual)
{
    const struct command *command = argc > 1 ? find_command(argv[1]) : NULL;
    char name[64];

    if (argc > 1 && !command)
        return unknown_command(argv[1]);
    if (argc > 2 && !manual)
        command = own_command(command, argv[2]);
    snprintf(name, sizeof(name), "tracectl %s", command ? command->name : "");
    if (manual && command)
        manual_command(stdout, command);
    else if (manual)
        manual_overview(stdout, &main_argp, commands, ARRAY_SIZE(commands));
    else if (command)
        argp_help(command->argp, stdout, ARGP_HELP_STD_HELP & ~ARGP_HELP_EXIT_OK, name);
    else
        argp_help(&main_argp, stdout, ARGP_HELP_STD_HELP & ~ARGP_HELP_EXIT_OK, (char *)"tracectl");
    return fflush(stdout) ? EXIT_FAILED : EXIT_NOTHING_FOUND;
}

int main(int argc, char **argv)
{
    const struct command *command;
    const char *environment = getenv("TRACECTL_DB");
    char name[64], tool[] = "tracectl";
    int index = 0;

    argv[0] = tool; /* what getopt begins its messages with */
    argp_err_exit_status = EXIT_USAGE;
    cli.store_path = environment && *environment ? environment : "tracectl.db";
    if (argp_parse(&main_argp, argc, argv, ARGP_IN_ORDER, NULL, &index) || !index)
        return EXIT_USAGE;
    if (!strcmp(argv[index], "help") || !strcmp(argv[index], "manual"))
        return run_help(argc - index, argv + index, argv[index][0] == 'm');
    command = find_command(argv[index]);
    if (!command)
        return unknown_command(argv[index]);
    snprintf(name, sizeof(name), "tracectl %s", command->name);
    argv[index] = name;
    return command->run(argc - index, argv + index);
}
