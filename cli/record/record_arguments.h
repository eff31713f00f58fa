/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The command line of `tracectl record`. */
#ifndef TRACECTL_CLI_RECORD_RECORD_ARGUMENTS_H
#define TRACECTL_CLI_RECORD_RECORD_ARGUMENTS_H

#include <argp.h>

#include "cli/common/function_choice.h"
#include "cli/common/pid_list.h"
#include "collector/recording/recorder.h"

struct record_arguments {
    struct recorder_options recorder;
    struct function_choice choice;
    struct function_choice triggers; /* what opens windows, if anything does (trigger_text) */
    const char *trigger_text;
    const char *filter, *filter_file; /* which choice.filter is made of */
    struct flight_options flight;     /* .window_ns 0: everything is kept */
    struct flight_trigger *flight_triggers;
    struct pid_list pids;
    struct sync_declaration *declarations; /* sinks, handlers... */
    size_t declaration_count, declaration_capacity;
    char **tags; /* "KEY=VALUE" */
    size_t tag_count, tag_capacity;
    char **command; /* NULL-terminated, NULL with -p */
    uint64_t duration_ns;
    bool exit_status; /* exit with the command's status */
    bool has_budget;  /* --budget was given */
    bool when_behind; /* --when-behind was given */
    bool has_share;   /* --trigger-share was given */
    bool dry_run;     /* print what would be probed, and do nothing */
};

/* Parses into a struct record_arguments, which record_arguments_init has filled with the defaults. */
extern const struct argp record_argp;

void record_arguments_init(struct record_arguments *arguments);
void record_arguments_release(struct record_arguments *arguments);

/* `words` with `separator` between them; NULL: no memory. The caller frees it. */
char *join_words(char *const *words, const char *separator);

#endif
