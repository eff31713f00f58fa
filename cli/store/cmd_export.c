/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl export RUN [P.T]: a run in the format of another tool. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/picture/flame_graph.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/output.h"
#include "cli/common/output_file.h"
#include "store/export/export_formats.h"

enum export_key { KEY_SEQ = 256, KEY_FROM, KEY_TO, KEY_WEIGHT };

struct export_input {
    const char *run, *path;
    const struct export_format *format;
    struct export_options options;
    uint64_t from_ns, to_ns; /* since the run began */
    bool has_from, has_to;   /* whether they were given */
};

/* "FIRST..LAST", "FIRST.." or "..LAST". False: it is none, or the first event alone, without its end. */
static bool parse_seq(const char *arg, struct export_options *options)
{
    const char *last = strstr(arg, ".."), *end = arg;

    if (!last || !strpbrk(arg, "0123456789"))
        return false;
    if ((last != arg && !number_parse_count_at(arg, &options->first_seq, &end)) || end != last)
        return false;
    return !last[2] || (number_parse_count(last + 2, &options->last_seq) && options->last_seq &&
                        options->last_seq >= options->first_seq);
}

static const struct export_format *find_format(const char *name)
{
    return strcmp(name, flame_graph_format.name) ? export_format_find(name) : &flame_graph_format;
}

static void check(struct export_input *input, struct argp_state *state)
{
    if (!input->run)
        argp_error(state, "export needs a run (tracectl runs lists them)");
    if (!input->format)
        argp_error(state, "export needs --format (--help lists them)");
    else if (input->format->makes_directory && !input->path)
        argp_error(state, "--format %s makes a directory: name it with -o", input->format->name);
    if (cli.json && !input->path)
        argp_error(state, "--json needs -o: standard output is the export");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct export_input *input = state->input;

    switch (key) {
    case 'f':
        input->format = find_format(arg);
        if (!input->format)
            argp_error(state, "unknown format '%s' (--help lists them)", arg);
        return 0;
    case 'o':
        input->path = arg;
        return 0;
    case KEY_SEQ:
        if (!parse_seq(arg, &input->options))
            argp_error(state, "--seq must be FIRST..LAST, not '%s'", arg);
        return 0;
    case KEY_FROM:
        input->from_ns = cli_parse_duration(state, "--from", arg, 0);
        input->has_from = true;
        return 0;
    case KEY_TO:
        input->to_ns = cli_parse_duration(state, "--to", arg, 0);
        input->has_to = true;
        return 0;
    case KEY_WEIGHT:
        if (strcmp(arg, "calls") != 0 && strcmp(arg, "time") != 0)
            argp_error(state, "--weight must be calls or time, not '%s'", arg);
        input->options.weight = *arg == 't' ? EXPORT_TIME : EXPORT_CALLS;
        return 0;
    case ARGP_KEY_ARG:
        if (input->options.thread)
            argp_usage(state);
        if (input->run)
            input->options.thread = arg;
        else
            input->run = arg;
        return 0;
    case ARGP_KEY_END:
        check(input, state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {
    {"format", 'f', "FORMAT", 0,
     "chrome: JSON trace events, for Perfetto and chrome://tracing; perfetto: Perfetto's protobuf; "
     "flamegraph: a flame graph to open in a browser (SVG); speedscope: profiles for Speedscope; pprof: a "
     "profile for pprof; callgrind: call costs for KCachegrind and callgrind_annotate; folded: stacks for "
     "flame graph tools; otf2: an Open Trace Format 2 archive (a directory); dot: the call graph, for "
     "Graphviz; csv: one row per event; json: everything in one document",
     0},
    {"output", 'o', "FILE", 0, "Output file (default: standard output); for otf2 the directory", 0},
    {"seq", KEY_SEQ, "FIRST..LAST", 0,
     "Export only these events of each thread; FIRST or LAST may be omitted", 0},
    {"from", KEY_FROM, "TIME", 0,
     "Export only events later than this after the start of the run "
     "(1.5, 200ms, 5m)",
     0},
    {"to", KEY_TO, "TIME", 0, "Export only events up to this time after the start of the run", 0},
    {"weight", KEY_WEIGHT, "WHAT", 0,
     "Weight of a stack (flamegraph, speedscope, pprof, callgrind, folded): calls (default) or time "
     "(nanoseconds in the function itself)",
     0},
    {0},
};
static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "RUN [P.T]",
    .doc =
        "Export a run, or one thread of it, for another tool.\vUnknown parts are marked: lost events "
        "are marks at their place, and calls that never returned have a begin and no end. In runs that "
        "did not record every time (--time anchor), events between two recorded times are spaced "
        "evenly; in runs without times they are one microsecond apart. csv and json contain only the "
        "recorded times. With --seq, --from or --to, a call that began before the first exported event "
        "starts there; dot always draws the whole run.",
    .children = cli_common_children,
};

static void print(const struct export_input *input, const struct tracestore_run *run,
                  const struct export_totals *totals, double seconds)
{
    char events[32];

    if (cli.json) {
        AUTO_JSON json_t *json = json_pack(
            "{s:I, s:o, s:s, s:o, s:I, s:I, s:I, s:I, s:f}", "run", (json_int_t)run->run_id, "name",
            cli_json_text(run->name), "format", input->format->name, "output", cli_json_text(input->path),
            "threads", (json_int_t)totals->threads, "events", (json_int_t)totals->events, "lost",
            (json_int_t)totals->lost, "damaged", (json_int_t)totals->damaged, "wall_seconds", seconds);

        cli_json_print(json);
        return;
    }
    if (cli.verbosity < 0)
        return;
    text_count(totals->events, events, sizeof(events));
    text_print(stdout, "run %lld '%s': %s %s of %llu thread%s to %s\n", (long long)run->run_id, run->name,
               events, strcmp(input->format->name, "dot") ? "events" : "calls",
               (unsigned long long)totals->threads, totals->threads == 1 ? "" : "s", input->path);
}

/* Opens the output; what the walk of the store writes goes through a large buffer. */
static int write_to(struct export_input *input, struct tracestore *store, const struct tracestore_run *run,
                    struct export_totals *totals, struct error *err)
{
    const bool to_file = input->path && !input->format->makes_directory;
    struct output_file file = {0};
    int r = to_file ? output_file_open(&file, input->path, err) : 0;

    input->options.directory = input->path;
    if (r == 0)
        r = export_write(input->format, store, run, &input->options, to_file ? file.stream : stdout, totals,
                         err);
    return output_file_close(&file, r, err);
}

static void set_times(struct export_input *input, const struct tracestore_run *run)
{
    if (input->has_from)
        input->options.from_ns = run->started_ns + input->from_ns;
    if (input->has_to)
        input->options.to_ns = run->started_ns + input->to_ns;
}

static int run(int argc, char **argv)
{
    struct export_input input = {0};
    AUTO_STORE struct tracestore *store = NULL;
    AUTO_RUN struct tracestore_run run = {0};
    struct export_totals totals = {0};
    uint64_t started = clock_ns(CLOCK_MONOTONIC);
    struct error err = {0};

    cli_parse(&cmd_export, argc, argv, &input);
    if (cli_open_run(input.run, TRACESTORE_READ, &store, &run, &err) < 0)
        return cli_fail(&err);
    set_times(&input, &run);
    if (write_to(&input, store, &run, &totals, &err) < 0)
        return cli_output_broken() ? cli_finish(EXIT_FAILED) : cli_fail(&err);
    if (input.path)
        print(&input, &run, &totals, (double)(clock_ns(CLOCK_MONOTONIC) - started) / 1e9);
    if (totals.damaged) {
        error_say(&err, -EBADMSG,
                  "cannot read all of run %lld: %llu segments are damaged and marked as lost (see "
                  "'tracectl verify')",
                  (long long)run.run_id, (unsigned long long)totals.damaged);
        return cli_fail(&err);
    }
    return cli_finish(EXIT_NOTHING_FOUND);
}

const struct command cmd_export = {
    .name = "export",
    .summary = "export a run for another tool (Perfetto, flame graph, CSV, ...)",
    .argp = &argp,
    .examples =
        "Export a run for Perfetto:\n"
        "  tracectl export latest -f chrome -o trace.json\n"
        "Make a flame graph:\n"
        "  tracectl export latest -f flamegraph -o flame.svg\n"
        "Export the first two seconds as CSV:\n"
        "  tracectl export latest -f csv --to 2s -o events.csv\n",
    .run = run,
};
