/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/record/flight_arguments.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "cli/common/command.h"
#include "cli/common/retention_arguments.h"
#include "cli/record/record_arguments.h"

enum { KEY_FLIGHT = 360, KEY_FLIGHT_ON, KEY_FLIGHT_SIZE };

enum { WINDOW_MIN_NS = 60000000 };

static const struct argp_option flight_options[] = {
    {"flight", KEY_FLIGHT, "TIME", 0,
     "Flight recorder: keep only the last TIME (30s, 5m; a bare number is minutes) and store it as a "
     "run when a trigger fires (--flight-on) and at each SIGUSR1",
     1},
    {"flight-on", KEY_FLIGHT_ON, "TRIGGER", 0,
     "With --flight, may be repeated: crash, end, exit:nonzero, exit:STATUS, call:REGEX, slow:REGEX:200ms "
     "(default: crash and end)",
     1},
    {"flight-size", KEY_FLIGHT_SIZE, "BYTES", 0,
     "With --flight: maximum size of the kept window; it is shortened to fit (default 64M)", 1},
    {0},
};

static void add_trigger(struct record_arguments *arguments, const char *text, struct argp_state *state)
{
    struct error err = {0};
    struct flight_trigger *triggers =
        realloc(arguments->flight_triggers, (arguments->flight.trigger_count + 1) * sizeof(*triggers));

    if (!triggers) {
        argp_failure(state, EXIT_FAILED, ENOMEM, "record");
        return;
    }
    arguments->flight_triggers = triggers;
    arguments->flight.triggers = triggers;
    if (flight_trigger_parse(text, &triggers[arguments->flight.trigger_count], &err)) {
        argp_error(state, "%s", err.message);
        return;
    }
    arguments->flight.trigger_count++;
    if (flight_trigger_is_of_function(&triggers[arguments->flight.trigger_count - 1]))
        arguments->recorder.go.functions = true;
}

static void check(struct record_arguments *arguments, struct argp_state *state)
{
    if (!arguments->flight.window_ns) {
        if (arguments->flight.trigger_count || arguments->flight.window_bytes)
            argp_error(state, "--flight-on and --flight-size need --flight");
        return;
    }
    if (arguments->recorder.go.detail != GO_DETAIL_NONE || arguments->recorder.content.sync)
        argp_error(state, "--flight keeps calls only; it cannot be used with --go or --sync");
    if (arguments->flight.trigger_count)
        return;
    add_trigger(arguments, "crash", state);
    add_trigger(arguments, "end", state);
}

static error_t parse_flight(int key, char *arg, struct argp_state *state)
{
    struct record_arguments *arguments = state->input;

    switch (key) {
    case KEY_FLIGHT:
        arguments->flight.window_ns = cli_parse_duration_in(state, "--flight", arg, WINDOW_MIN_NS, 60);
        return 0;
    case KEY_FLIGHT_ON:
        add_trigger(arguments, arg, state);
        return 0;
    case KEY_FLIGHT_SIZE:
        arguments->flight.window_bytes = cli_parse_bytes(arg, state);
        return 0;
    case ARGP_KEY_END:
        check(arguments, state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp flight_argp = {.options = flight_options, .parser = parse_flight};

void flight_arguments_release(struct record_arguments *arguments)
{
    for (size_t i = 0; i < arguments->flight.trigger_count; i++)
        flight_trigger_release(&arguments->flight_triggers[i]);
    free(arguments->flight_triggers);
}
