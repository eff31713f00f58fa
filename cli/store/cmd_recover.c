/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl recover: closes runs whose recorder was killed; salvages a damaged store into a new one. */
#include <inttypes.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/output.h"

static error_t parse(int key, char *arg, struct argp_state *state)
{
    const char **output = state->input;

    if (key == 'o') {
        *output = arg;
        return 0;
    }
    return cli_parse_no_arguments(key, arg, state);
}

static const struct argp_option options[] = {
    {"output", 'o', "FILE", 0, "Copy everything readable into this new store", 1},
    {0},
};
static const struct argp argp = {
    .options = options,
    .parser = parse,
    .doc =
        "Close the runs whose recorder was killed: their events are kept, they end at their last commit "
        "and stay marked as unfinished. Windows that killed flight recorders (record --flight) left "
        "beside the store become runs. With -o, create a new store from everything that is readable in "
        "a damaged one.\vRuns that are being recorded are not changed. With -o nothing is written to "
        "the damaged store: unreadable pages are skipped, segments are copied if their checksum is "
        "correct, and the losses table of the new store lists what is missing. Exit status: 0 nothing "
        "is missing, 1 something is missing, 3 failed.",
    .children = cli_common_children,
};

static int finish_in_place(const struct trace_recovered *recovered)
{
    if (cli.json) {
        AUTO_JSON json_t *document = json_pack(
            "{s:I, s:I, s:I, s:I, s:I}", "windows", (json_int_t)recovered->windows, "runs",
            (json_int_t)recovered->runs, "segments", (json_int_t)recovered->segments, "events",
            (json_int_t)recovered->events, "damaged_journals", (json_int_t)recovered->damaged_tails);

        cli_json_print(document);
    } else if (cli.verbosity >= 0) {
        text_print(stdout,
                   "%" PRIu64 " run%s closed; %" PRIu64 " events of their journals are in %" PRIu64
                   " segments\n",
                   recovered->runs, recovered->runs == 1 ? "" : "s", recovered->events, recovered->segments);
        if (recovered->windows)
            text_print(stdout, "windows left by flight recorders, now runs: %" PRIu64 "\n",
                       recovered->windows);
        if (recovered->damaged_tails)
            text_print(stdout, "journals that are readable only in part: %" PRIu64 "\n",
                       recovered->damaged_tails);
    }
    return cli_finish(recovered->damaged_tails ? EXIT_FOUND : EXIT_NOTHING_FOUND);
}

static int finish_salvage(const char *output, const struct trace_salvaged *salvaged)
{
    bool missing = salvaged->lost_rows || salvaged->lost_stretches || salvaged->lost_segments ||
                   salvaged->lost_events || salvaged->invented || salvaged->recovered.damaged_tails;

    if (cli.json) {
        AUTO_JSON json_t *document = json_pack(
            "{s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "store", cli_json_text(output),
            "runs", (json_int_t)salvaged->runs, "threads", (json_int_t)salvaged->threads, "segments",
            (json_int_t)salvaged->segments, "events", (json_int_t)salvaged->events, "lost_rows",
            (json_int_t)salvaged->lost_rows, "lost_stretches", (json_int_t)salvaged->lost_stretches,
            "lost_segments", (json_int_t)salvaged->lost_segments, "lost_events",
            (json_int_t)salvaged->lost_events, "invented_rows", (json_int_t)salvaged->invented, "closed_runs",
            (json_int_t)salvaged->recovered.runs, "damaged_journals",
            (json_int_t)salvaged->recovered.damaged_tails);

        cli_json_print(document);
    } else if (cli.verbosity >= 0) {
        text_print(stdout,
                   "%" PRIu64 " runs, %" PRIu64 " threads, %" PRIu64 " segments with %" PRIu64
                   " events are in %s\n",
                   salvaged->runs, salvaged->threads, salvaged->segments, salvaged->events, output);
        if (missing)
            text_print(stdout,
                       "lost: %" PRIu64 " segments, %" PRIu64 " rows, %" PRIu64
                       " unreadable stretches of tables, "
                       "%" PRIu64 " damaged journals; %" PRIu64 " events are missing, %" PRIu64
                       " placeholder rows were added\n",
                       salvaged->lost_segments, salvaged->lost_rows, salvaged->lost_stretches,
                       salvaged->recovered.damaged_tails, salvaged->lost_events, salvaged->invented);
    }
    return cli_finish(missing ? EXIT_FOUND : EXIT_NOTHING_FOUND);
}

static int run(int argc, char **argv)
{
    AUTO_STORE struct tracestore *store = NULL;
    const char *output = NULL;
    struct trace_recovered recovered;
    struct trace_salvaged salvaged;
    struct error err = {0};

    cli_parse(&cmd_recover, argc, argv, &output);
    if (output)
        return tracestore_salvage(cli.store_path, output, &salvaged, &err) < 0
                   ? cli_fail(&err)
                   : finish_salvage(output, &salvaged);
    if (cli_open_store(TRACESTORE_CHANGE, &store, &err) < 0 ||
        tracestore_recover(store, &recovered, &err) < 0)
        return cli_fail(&err);
    return finish_in_place(&recovered);
}

const struct command cmd_recover = {
    .name = "recover",
    .summary = "close interrupted runs; salvage a damaged store",
    .argp = &argp,
    .examples =
        "Close the runs of a killed recorder:\n"
        "  tracectl recover\n"
        "Copy everything readable from a damaged store:\n"
        "  tracectl -d damaged.db recover -o salvaged.db\n",
    .run = run,
};
