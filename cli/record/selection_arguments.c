/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/record/selection_arguments.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"
#include "cli/common/command.h"
#include "cli/common/filter_file.h"
#include "cli/record/record_arguments.h"

enum {
    KEY_FUNCTIONS = 300,
    KEY_EXCLUDE,
    KEY_FILTER,
    KEY_FILTER_FILE,
    KEY_TRIGGER,
    KEY_TRIGGER_SHARE,
    KEY_IMAGES,
    KEY_SOURCE
};

static const struct argp_option selection_options[] = {
    {"functions", KEY_FUNCTIONS, "REGEX", 0, "Probe only functions whose name matches (extended regex)", 2},
    {"exclude", KEY_EXCLUDE, "REGEX", 0, "Do not probe functions whose name matches", 2},
    {"filter", KEY_FILTER, "SET[,SET...]", 0,
     "Probe only functions in these sets: mpi, omp, mem, source:src/net/, ...; prefix a set with '!' to "
     "exclude it. image:GLOB also probes these images, in addition to the programs themselves",
     2},
    {"filter-file", KEY_FILTER_FILE, "FILE", 0, FILTER_FILE_HELP, 2},
    {"trigger", KEY_TRIGGER, "REGEX", 0,
     "Record only the calls that a thread makes inside a function whose name matches; all other calls "
     "are counted and reported as not recorded",
     2},
    {"trigger-share", KEY_TRIGGER_SHARE, "PCT", 0,
     "With --trigger: record only this percentage of invocations, chosen at random (default 100)", 2},
    {"images", KEY_IMAGES, "main|all|GLOB[,GLOB]", 0,
     "Images to probe: the programs themselves (main, the default), all, or those whose path or file "
     "name matches",
     2},
    {"source", KEY_SOURCE, "GLOB[,GLOB]", 0,
     "Probe only functions whose source file, or a folder in its path, matches (needs debug information)", 2},
    {0},
};

static void parse_trigger(struct record_arguments *arguments, const char *text, struct argp_state *state)
{
    arguments->triggers.only_option = "--trigger";
    function_choice_parse(function_choice_only, &arguments->triggers, text, state);
    arguments->trigger_text = text;
    arguments->recorder.trigger.opens = function_choice_wants;
    arguments->recorder.trigger.context = &arguments->triggers;
    arguments->recorder.go.functions = true;
}

static void parse_trigger_share(struct record_arguments *arguments, const char *text,
                                struct argp_state *state)
{
    double share = 0;

    if (!number_parse_share(text, &share) || share <= 0 || share > 1)
        argp_error(state, "--trigger-share must be a percentage up to 100, not '%s'", text);
    arguments->recorder.trigger.share = share;
    arguments->has_share = true;
}

/* Errors of a filter are reported as nlr and diff report them. */
static void make_filter(struct record_arguments *arguments)
{
    struct error err = {0};
    int r = 0, status;

    if (arguments->filter || arguments->filter_file)
        r = function_choice_filter(&arguments->choice, arguments->filter, arguments->filter_file, &err);
    if (r >= 0)
        return;
    status = cli_fail(&err);
    exit(r == -EINVAL ? EXIT_USAGE : status);
}

static error_t parse_selection(int key, char *arg, struct argp_state *state)
{
    struct record_arguments *arguments = state->input;

    switch (key) {
    case KEY_FUNCTIONS:
        arguments->recorder.go.functions = true;
        function_choice_parse(function_choice_only, &arguments->choice, arg, state);
        return 0;
    case KEY_EXCLUDE:
        function_choice_parse(function_choice_exclude, &arguments->choice, arg, state);
        return 0;
    case KEY_FILTER:
        arguments->recorder.go.functions = true;
        arguments->filter = arg;
        return 0;
    case KEY_FILTER_FILE:
        arguments->filter_file = arg;
        return 0;
    case KEY_TRIGGER:
        parse_trigger(arguments, arg, state);
        return 0;
    case KEY_TRIGGER_SHARE:
        parse_trigger_share(arguments, arg, state);
        return 0;
    case KEY_IMAGES:
        function_choice_parse(function_choice_images, &arguments->choice, arg, state);
        return 0;
    case KEY_SOURCE:
        arguments->recorder.go.functions = true;
        function_choice_parse(function_choice_sources, &arguments->choice, arg, state);
        return 0;
    case ARGP_KEY_END:
        if (arguments->has_share && !arguments->trigger_text)
            argp_error(state, "--trigger-share needs --trigger");
        make_filter(arguments);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp selection_argp = {
    .options = selection_options, .parser = parse_selection, .help_filter = filter_file_help};

bool record_arguments_wants(void *context, struct elf_image *image, const struct image_function *function)
{
    struct record_arguments *arguments = context;

    for (size_t i = 0; i < arguments->flight.trigger_count; i++)
        if (flight_trigger_wants(&arguments->flight.triggers[i], function))
            return true;
    return function_choice_wants(&arguments->choice, image, function) ||
           (arguments->trigger_text && function_choice_wants(&arguments->triggers, image, function));
}

const char *record_arguments_name(void *context, struct elf_image *image,
                                  const struct image_function *function)
{
    struct record_arguments *arguments = context;

    return function_choice_name(&arguments->choice, image, function);
}

bool record_arguments_wants_image(void *context, const char *path, enum image_kind kind)
{
    struct record_arguments *arguments = context;

    return function_choice_wants_image(&arguments->choice, path, kind);
}
