/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/record/sync_arguments.h"

#include <errno.h>

#include "base/array.h"
#include "base/error.h"
#include "cli/common/command.h"
#include "cli/record/record_arguments.h"

enum { KEY_SYNC = 320, KEY_SINK, KEY_HANDLER, KEY_ENQUEUE, KEY_DEQUEUE };

static const struct argp_option sync_options[] = {
    {"sync", KEY_SYNC, 0, 0,
     "Also record synchronisation between threads and processes: locks, conditions, semaphores, "
     "messages, waiting, input and output (the SQL table sync_events)",
     3},
    {"sink", KEY_SINK, "FUNCTION", 0,
     "With --sync: the duration of this function matters (for cascade); may be repeated", 3},
    {"handler", KEY_HANDLER, "FUNCTION[:ARGn]", 0,
     "With --sync: this function handles an event or a request; its nth argument is the event; may "
     "be repeated",
     3},
    {"enqueue", KEY_ENQUEUE, "FUNCTION:ARGn", 0,
     "With --sync: this function puts an event, its nth argument, into a queue; may be repeated", 3},
    {"dequeue", KEY_DEQUEUE, "FUNCTION:ARGn", 0,
     "With --sync: this function takes an event from a queue; may be repeated", 3},
    {0},
};

static void parse_declaration(enum sync_event_kind kind, struct record_arguments *arguments, const char *text,
                              struct argp_state *state)
{
    struct error err = {0};

    if (array_reserve(&arguments->declarations, &arguments->declaration_capacity,
                      arguments->declaration_count + 1))
        argp_failure(state, EXIT_FAILED, ENOMEM, "record");
    if (sync_declaration_parse(kind, text, &arguments->declarations[arguments->declaration_count], &err))
        argp_error(state, "%s", err.message);
    arguments->declaration_count++;
    arguments->recorder.content.declarations = arguments->declarations;
    arguments->recorder.content.declaration_count = arguments->declaration_count;
}

static error_t parse_sync(int key, char *arg, struct argp_state *state)
{
    struct record_arguments *arguments = state->input;

    switch (key) {
    case KEY_SYNC:
        arguments->recorder.content.sync = true;
        return 0;
    case KEY_SINK:
        parse_declaration(SYNC_SINK, arguments, arg, state);
        return 0;
    case KEY_HANDLER:
        parse_declaration(SYNC_HANDLER, arguments, arg, state);
        return 0;
    case KEY_ENQUEUE:
        parse_declaration(SYNC_ENQUEUE, arguments, arg, state);
        return 0;
    case KEY_DEQUEUE:
        parse_declaration(SYNC_DEQUEUE, arguments, arg, state);
        return 0;
    case ARGP_KEY_END:
        if (arguments->declaration_count && !arguments->recorder.content.sync)
            argp_error(state, "--sink, --handler, --enqueue and --dequeue need --sync");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp sync_argp = {.options = sync_options, .parser = parse_sync};
