/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/record/record_flight.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/output.h"
#include "cli/common/progress_line.h"

static double seconds_of(const struct flight_report *report)
{
    return (double)(report->to_ns - report->from_ns) / 1e9;
}

void flight_log_add(void *context, const struct flight_report *report)
{
    struct flight_log *log = context;

    if (!array_reserve(&log->reports, &log->capacity, log->count + 1))
        log->reports[log->count++] = *report;
    progress_line_clear();
    if (*report->error)
        text_print(stderr, "tracectl: the flight recorder's window could not be stored as a run (%s): %s\n",
                   report->trigger, report->error);
    else if (!report->run_id && cli.verbosity >= 0)
        text_print(stderr, "tracectl: nothing was recorded in the flight recorder's window (%s)\n",
                   report->trigger);
    else if (cli.verbosity >= 0)
        text_print(stderr, "tracectl: run %lld '%s': the last %.1f s (%s)\n", (long long)report->run_id,
                   report->name, seconds_of(report), report->trigger);
}

void flight_log_release(struct flight_log *log)
{
    free(log->reports);
    *log = (struct flight_log){0};
}

static json_t *commit_json(const struct flight_report *report)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:f, s:o}", "run",
                     report->run_id ? json_integer(report->run_id) : json_null(), "name",
                     cli_json_text(report->name), "trigger", cli_json_text(report->trigger), "from",
                     cli_json_time(report->from_ns), "to", cli_json_time(report->to_ns), "seconds",
                     seconds_of(report), "error",
                     *report->error ? cli_json_text(report->error) : json_null());
}

json_t *flight_log_json(const struct flight_log *log, const struct flight_options *options,
                        const struct flight_counts *counts, const struct trace_writer_window *window)
{
    json_t *commits = json_array();

    for (size_t i = 0; i < log->count; i++)
        json_array_append_new(commits, commit_json(&log->reports[i]));
    return json_pack("{s:f, s:I, s:I, s:b, s:o}", "window_seconds", (double)options->window_ns / 1e9, "fired",
                     (json_int_t)counts->fired, "dropped_events", (json_int_t)window->dropped_events, "cut",
                     window->too_much, "commits", commits);
}

void flight_log_print_end(const struct flight_log *log, const struct trace_writer_window *window)
{
    if (!log->count)
        fputs("tracectl: no trigger fired; no run was stored\n", stderr);
    if (window->too_much)
        fputs("tracectl: at times the window was shorter than requested (see --flight-size)\n", stderr);
}
