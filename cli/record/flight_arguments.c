/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/record/flight_arguments.h"

#include <errno.h>
#include <stdlib.h>

#include "cli/common/command.h"

void flight_arguments_set_window(struct record_arguments *arguments, const char *text,
                                 struct argp_state *state)
{
    char *end;
    double minutes = strtod(text, &end);

    if (end == text || *end || !(minutes >= 1e-3) || minutes > 1e6)
        argp_error(state, "--flight is a number of minutes, as 5 or 0.5, not '%s'", text);
    arguments->flight.window_ns = (uint64_t)(minutes * 60e9);
}

void flight_arguments_add_trigger(struct record_arguments *arguments, const char *text,
                                  struct argp_state *state)
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
        arguments->recorder.go_functions = true;
}

void flight_arguments_check(struct record_arguments *arguments, struct argp_state *state)
{
    if (!arguments->flight.window_ns) {
        if (arguments->flight.trigger_count || arguments->flight.window_bytes)
            argp_error(state, "--flight-on and --flight-size need --flight");
        return;
    }
    if (arguments->recorder.goroutines != GO_DETAIL_NONE || arguments->recorder.sync)
        argp_error(state, "--flight keeps calls: it does not go with --go or --sync");
    if (arguments->flight.trigger_count)
        return;
    flight_arguments_add_trigger(arguments, "crash", state);
    flight_arguments_add_trigger(arguments, "end", state);
}

void flight_arguments_release(struct record_arguments *arguments)
{
    for (size_t i = 0; i < arguments->flight.trigger_count; i++)
        flight_trigger_release(&arguments->flight_triggers[i]);
    free(arguments->flight_triggers);
}
