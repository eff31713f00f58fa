/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl pull: runs of the fleet in a store. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/common/output.h"
#include "cli/fleet/fleet_commands.h"

struct pull_arguments {
    struct fleet_arguments fleet; /* first: fleet_parse_words() takes it for the whole */
    const char *output;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct pull_arguments *arguments = state->input;

    switch (key) {
    case 'o':
        arguments->output = arg;
        return 0;
    case ARGP_KEY_END:
        if (!arguments->fleet.count)
            argp_error(state, "pull needs a run of the fleet");
        return 0;
    default:
        return fleet_parse_words(key, arg, state);
    }
}

static const struct argp_option options[] = {
    {"output", 'o', "STORE", 0,
     "The store that gets the runs (default: that of -d); it is created if it does not exist", 2},
    {0},
};
static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "RUN...",
    .doc =
        "Copy runs of the fleet into a store, where every command works on them.\vRUN is the run's number in the fleet, "
        "'latest', or a name, of which the newest run is meant. The run gets a new number in the store; if it is there "
        "already, nothing is changed. Every segment is decoded.",
    .children = fleet_children,
};

static void print_pulled(struct tracestore *store, const char *word, bool is_new)
{
    struct tracestore_run run = {0};

    if (cli.verbosity < 0)
        return;
    if (!is_new)
        text_print(stdout, "run %s is in the store already\n", word);
    else if (!tracestore_find_run(store, "latest", &run, NULL))
        text_print(stdout, "run %s of the fleet is run %" PRId64 " '%s' now\n", word, run.run_id, run.name);
    tracestore_run_release(&run);
}

static int pull(struct fleet *fleet, const struct pull_arguments *arguments, struct error *err)
{
    AUTO_STORE struct tracestore *store = NULL;
    int64_t run_id;
    int code = 0;

    for (size_t i = 0; i < arguments->fleet.count && !code; i++) {
        bool is_new;

        code = fleet_find_run(fleet, arguments->fleet.words[i], &run_id, err);
        if (!code && !store)
            code = tracestore_open(arguments->output ? arguments->output : cli.store_path, TRACESTORE_CREATE,
                                   &store, err);
        if (!code)
            code = fleet_pull_run(fleet, run_id, store, &is_new, err);
        if (!code)
            print_pulled(store, arguments->fleet.words[i], is_new);
    }
    return code;
}

static int run(int argc, char **argv)
{
    struct pull_arguments arguments = {0};
    struct fleet fleet;
    struct error err = {0};
    int code;

    cli_parse(&cmd_pull, argc, argv, &arguments);
    code = fleet_connect(arguments.fleet.url, &fleet, &err);
    if (!code) {
        code = pull(&fleet, &arguments, &err);
        fleet_close(&fleet);
    }
    free(arguments.fleet.words);
    return code ? cli_fail(&err) : cli_finish(EXIT_NOTHING_FOUND);
}

const struct command cmd_pull = {
    .name = "pull",
    .summary = "copy runs of a fleet into a store",
    .argp = &argp,
    .examples =
        "Look at the newest run of a name, from whichever host it is:\n"
        "  tracectl pull nightly -o nightly.db\n"
        "  tracectl -d nightly.db show latest\n",
    .run = run,
};
