/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What all subcommands share: the common options, and how command lines are read. */
#include "cli/common/command.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/debug.h"
#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/common/progress_line.h"
#include "cli/common/suggestion.h"
#include "collector/uprobe/bpf_messages.h"

enum { COMMANDS_MAX = 64 };

struct cli cli;

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
    case 'h':
        argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
        return 0;
    case 'q':
        cli.verbosity = -1;
        return 0;
    case 'v':
        if (cli.verbosity > 0) /* the second one */
            debug_start(getenv("TRACECTL_DEBUG"));
        cli.verbosity = 1;
        bpf_messages_show(print_message);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* Whose command line is read, for the examples of its --help; NULL: tracectl's own. */
static const struct command *current;

static char *help_examples(int key, const char *text, void *input)
{
    char *examples = NULL;

    if (key != ARGP_KEY_HELP_EXTRA || !current || !current->examples)
        return (char *)text;
    return asprintf(&examples, "Examples:\n%s", current->examples) < 0 ? (char *)text : examples;
}

static const struct argp_option common_options[] = {
    {"store", 'd', "STORE", 0, "The trace store, one SQLite file (default $TRACECTL_DB, else ./tracectl.db)",
     90},
    {"json", 'j', 0, 0, "Print one JSON document on standard output", 90},
    {"quiet", 'q', 0, 0, "Print less", 90},
    {NULL, 'h', 0, OPTION_HIDDEN, NULL, 90},
    {"verbose", 'v', 0, 0, "Print more", 90},
    {0},
};

const struct argp cli_common_argp = {
    .options = common_options, .parser = parse_common, .help_filter = help_examples};
const struct argp_child cli_common_children[] = {{&cli_common_argp, 0, NULL, 0}, {0}};

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
    text_print(stream, "\nRun '%s COMMAND --help' for the options of a command.\n", program);
    fclose(stream);
    return text;
}

const struct command *cli_find_command(const struct command *const *list, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(cli_last_name(list[i]), name))
            return list[i];
    return NULL;
}

int cli_unknown_command(const struct command *const *list, size_t count, const char *before, const char *name)
{
    const char *names[COMMANDS_MAX], *meant;

    for (size_t i = 0; i < count && i < COMMANDS_MAX; i++)
        names[i] = cli_last_name(list[i]);
    meant = suggestion_for(name, names, count < COMMANDS_MAX ? count : COMMANDS_MAX);
    if (meant)
        text_print(stderr, "tracectl: unknown command '%s%s' (did you mean '%s%s'?)\n", before, name, before,
                   meant);
    else
        text_print(stderr, "tracectl: unknown command '%s%s' (see tracectl %s--help)\n", before, name,
                   before);
    return EXIT_USAGE;
}

error_t cli_parse_group(int key, char *arg, struct argp_state *state)
{
    int *index = state->input;

    switch (key) {
    case ARGP_KEY_ARG:
        *index = state->next - 1;
        state->next = state->argc; /* the rest is for the command's own parser */
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "no command given (--help lists them)");
        return EINVAL;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int cli_run_group(const struct command *group, int argc, char **argv)
{
    const struct command *command;
    char name[64];
    size_t count = 0;
    int index = 0;

    cli_parse(group, argc, argv, &index);
    while (group->commands[count])
        count++;
    command = cli_find_command(group->commands, count, argv[index]);
    snprintf(name, sizeof(name), "%s ", group->name);
    if (!command)
        return cli_unknown_command(group->commands, count, name, argv[index]);
    snprintf(name, sizeof(name), "tracectl %s", command->name);
    argv[index] = name;
    return command->run(argc - index, argv + index);
}

void cli_help(const struct command *command)
{
    char name[64];

    snprintf(name, sizeof(name), "tracectl %s", command->name);
    current = command;
    argp_help(command->argp, stdout, ARGP_HELP_STD_HELP & ~ARGP_HELP_EXIT_OK, name);
}

int cli_fail(const struct error *err)
{
    progress_line_end();
    text_print(stderr, "tracectl: %s\n", err->message[0] ? err->message : "failed for an unknown reason");
    return EXIT_FAILED;
}

void cli_parse(const struct command *command, int argc, char **argv, void *input)
{
    current = command;
    suggestion_check_options(command->argp, command->argp_flags, argc, argv);
    if (argp_parse(command->argp, argc, argv, command->argp_flags, NULL, input))
        exit(EXIT_USAGE);
}

unsigned long cli_parse_number(const struct argp_state *state, const char *option, const char *text,
                               unsigned long low, unsigned long high)
{
    uint64_t number;

    if (!number_parse_count(text, &number) || number < low || number > high)
        argp_error(state, "%s must be a number from %lu to %lu, not '%s'", option, low, high, text);
    return number;
}

uint64_t cli_parse_duration_in(const struct argp_state *state, const char *option, const char *text,
                               uint64_t low_ns, double bare)
{
    uint64_t ns;

    if (number_parse_duration_in(text, bare * 1e9, &ns) && ns >= low_ns)
        return ns;
    argp_error(state, "%s must be a time such as 200ms, 30s, 5m or 1h, of %g s or more, not '%s'", option,
               (double)low_ns / 1e9, text);
    return 0;
}

uint64_t cli_parse_duration(const struct argp_state *state, const char *option, const char *text,
                            uint64_t low_ns)
{
    return cli_parse_duration_in(state, option, text, low_ns, 1);
}

error_t cli_parse_no_arguments(int key, char *arg, struct argp_state *state)
{
    if (key == ARGP_KEY_ARG)
        argp_usage(state);
    return ARGP_ERR_UNKNOWN;
}
