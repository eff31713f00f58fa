/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl merge: the runs of several stores in one, and one run for each job. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/output.h"

struct merge_arguments {
    const char **stores;
    size_t count, capacity;
    const char *output;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct merge_arguments *arguments = state->input;

    switch (key) {
    case 'o':
        arguments->output = arg;
        return 0;
    case ARGP_KEY_ARG:
        if (array_reserve(&arguments->stores, &arguments->capacity, arguments->count + 1))
            argp_failure(state, EXIT_FAILED, 0, "out of memory");
        arguments->stores[arguments->count++] = arg;
        return 0;
    case ARGP_KEY_END:
        if (!arguments->count)
            argp_error(state, "merge needs the stores to read");
        if (!arguments->output)
            argp_error(state, "merge needs the store to write to (-o STORE)");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {
    {"output", 'o', "STORE", 0, "The store that gets the runs; it is created if it does not exist", 1},
    {0},
};
static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "STORE...",
    .doc =
        "Copy the runs of stores into one store. Nothing is written to the stores that are read.\vRuns get "
        "new numbers and keep their names, tags and hosts. A function that several stores have is one "
        "function in the result. A run that was merged before is skipped, so a merge may be repeated. "
        "Every segment is decoded; a damaged store and a run that has not ended are refused, and then "
        "nothing of that store is copied.\n\nRuns with the same tag job=NAME become one run: the ranks "
        "of an MPI job whose launcher started a recorder for each rank (mpiexec -n 4 tracectl record -- "
        "./solver). Recorders with the same store do that themselves when they end. MPICH's launcher gives a job no "
        "name that all hosts know: over several hosts, give one with --tag job=NAME. The parts of a "
        "job stay apart where two threads have the same label, and where they recorded locks and "
        "messages (--sync).",
    .children = cli_common_children,
};

static int print_result(const struct merge_arguments *arguments, const struct trace_merged *merged,
                        const struct trace_joined *joined)
{
    if (cli.json) {
        AUTO_JSON json_t *document =
            json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:I}", "store", cli_json_text(arguments->output),
                      "runs", (json_int_t)merged->runs, "present", (json_int_t)merged->present, "segments",
                      (json_int_t)merged->segments, "events", (json_int_t)merged->events, "joined",
                      (json_int_t)joined->runs, "apart", (json_int_t)joined->apart);

        cli_json_print(document);
    } else if (cli.verbosity >= 0) {
        text_print(stdout, "%'" PRIu64 " run%s with %'" PRIu64 " events added to %s\n", merged->runs,
                   text_plural(merged->runs), merged->events, arguments->output);
        if (merged->present)
            text_print(stdout, "skipped, merged before: %'" PRIu64 "\n", merged->present);
        if (joined->runs)
            text_print(stdout, "joined with other runs of the same job: %'" PRIu64 "\n", joined->runs);
        if (joined->apart)
            text_print(stdout,
                       "not joined with other runs of the same job: %'" PRIu64
                       " (the same thread labels, or recorded with --sync)\n",
                       joined->apart);
    }
    return cli_finish(EXIT_NOTHING_FOUND);
}

/* Whether all of the stores can be read: else none is made. */
static int check_stores(const struct merge_arguments *arguments, struct error *err)
{
    int r = 0;

    for (size_t i = 0; i < arguments->count && r == 0; i++) {
        AUTO_STORE struct tracestore *store = NULL;

        r = tracestore_open(arguments->stores[i], TRACESTORE_READ, &store, err);
    }
    return r;
}

static int merge(const struct merge_arguments *arguments)
{
    AUTO_STORE struct tracestore *store = NULL;
    struct trace_merged merged = {0};
    struct trace_joined joined = {0};
    struct error err = {0};

    if (check_stores(arguments, &err) < 0 ||
        tracestore_open(arguments->output, TRACESTORE_CREATE, &store, &err) < 0)
        return cli_fail(&err);
    for (size_t i = 0; i < arguments->count; i++)
        if (tracestore_merge(store, arguments->stores[i], &merged, &err) < 0)
            return cli_fail(&err);
    if (tracestore_join_jobs(store, &joined, &err) < 0)
        return cli_fail(&err);
    return print_result(arguments, &merged, &joined);
}

static int run(int argc, char **argv)
{
    struct merge_arguments arguments = {0};
    int status;

    cli_parse(&cmd_merge, argc, argv, &arguments);
    status = merge(&arguments);
    free(arguments.stores);
    return status;
}

const struct command cmd_merge = {
    .name = "merge",
    .summary = "copy the runs of several stores into one",
    .argp = &argp,
    .examples =
        "Bring together what the hosts of a cluster recorded:\n"
        "  tracectl merge node1.db node2.db node3.db -o all.db\n"
        "  tracectl -d all.db runs\n",
    .run = run,
};
