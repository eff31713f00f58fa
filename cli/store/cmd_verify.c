/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl verify: is the store consistent? */
#include <inttypes.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/output.h"

static void report(void *context, const struct tracestore_problem *problem)
{
    json_t *problems = context;

    if (!problems) {
        if (problem->segment_id)
            text_print(stdout, "run %" PRId64 ", thread %" PRId64 ", segment %" PRId64 ": %s\n",
                       problem->run_id, problem->thread_id, problem->segment_id, problem->text);
        else if (problem->run_id)
            text_print(stdout, "run %" PRId64 ": %s\n", problem->run_id, problem->text);
        else
            text_print(stdout, "%s\n", problem->text);
        return;
    }
    json_array_append_new(problems, json_pack("{s:I, s:I, s:I, s:o}", "run", (json_int_t)problem->run_id,
                                              "thread_id", (json_int_t)problem->thread_id, "segment_id",
                                              (json_int_t)problem->segment_id, "problem",
                                              cli_json_text(problem->text)));
}

/* The events that the catalog claims, all of which have been decoded when there was no problem. */
static int count_events(struct tracestore *store, uint64_t *ret_events, struct error *err)
{
    AUTO_STATEMENT *statement = NULL;
    AUTO_TOTALS_READER *reader = NULL;
    uint64_t events = 0;
    int r = tracestore_totals_open(store, 0, &reader, err);

    if (r == 0)
        r = cli_prepare(store, &statement, err, "SELECT run_id FROM runs", 0);
    while (r == 0 && (r = cli_step(statement, "i", err)) == 0) {
        struct tracestore_totals totals = {0};

        r = tracestore_totals_read(reader, sqlite3_column_int64(statement, 0), &totals, err);
        events += totals.events;
    }
    *ret_events = events;
    return r < 0 ? r : 0;
}

static int verify(struct tracestore *store, struct error *err)
{
    AUTO_JSON json_t *problems = cli.json ? json_array() : NULL;
    uint64_t segments = 0, events = 0;
    char segments_text[32], events_text[32];
    int found = tracestore_verify(store, report, problems, &segments, err);

    if (found < 0)
        return cli_fail(err);
    if (count_events(store, &events, err) < 0 && !found)
        return cli_fail(err);
    if (cli.json) {
        AUTO_JSON json_t *document =
            json_pack("{s:b, s:I, s:I, s:O}", "ok", !found, "segments", (json_int_t)segments, "events",
                      (json_int_t)events, "problems", problems);

        cli_json_print(document);
    } else if (cli.verbosity >= 0) {
        text_count(segments, segments_text, sizeof(segments_text));
        text_count(events, events_text, sizeof(events_text));
        text_print(stdout, "%s segments with %s events checked: ", segments_text, events_text);
        text_print(stdout, found ? "%d problem%s\n" : "no problem\n", found, found == 1 ? "" : "s");
    }
    return cli_finish(found ? EXIT_FOUND : EXIT_NOTHING_FOUND);
}

static const struct argp argp = {
    .parser = cli_parse_no_arguments,
    .doc =
        "Check the database, decode every segment, and compare each with its checksum and counts.\vExit "
        "status: 0 no problem, 1 problems found (one line each), 3 the check failed.",
    .children = cli_common_children,
};

static int run(int argc, char **argv)
{
    AUTO_STORE struct tracestore *store = NULL;
    struct error err = {0};

    cli_parse(&cmd_verify, argc, argv, NULL);
    if (cli_open_store(TRACESTORE_READ, &store, &err) < 0)
        return cli_fail(&err);
    return verify(store, &err);
}

const struct command cmd_verify = {
    .name = "verify",
    .summary = "check the database and every segment",
    .argp = &argp,
    .examples =
        "Check a store:\n"
        "  tracectl -d nightly.db verify\n",
    .run = run,
};
