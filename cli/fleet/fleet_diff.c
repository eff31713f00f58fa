/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl fleet diff, verify: runs of the fleet in a store of their own for a while. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/common/output.h"
#include "cli/fleet/fleet_commands.h"
#include "collector/fleet/fleet_tables.h"

/* The store, which goes with the program, however that ends. */
static char *scratch;

static void remove_scratch(void)
{
    fleet_scratch_remove(scratch);
    scratch = NULL;
}

static int make_scratch(struct tracestore **ret_store, struct error *err)
{
    int code = fleet_scratch_path(&scratch, err);

    if (!code)
        code = tracestore_open(scratch, TRACESTORE_CREATE, ret_store, err);
    return code;
}

/* ------------------------------------------------------------------------------------------ diff */

static error_t parse_diff(int key, char *arg, struct argp_state *state)
{
    const struct fleet_arguments *arguments = state->input;

    if (key == ARGP_KEY_END && arguments->count != 2)
        argp_error(state, "diff needs two runs of the fleet");
    return fleet_parse_words(key, arg, state);
}

static const struct argp diff_argp = {
    .parser = parse_diff,
    .args_doc = "NORMAL FAULTY",
    .doc =
        "Compare two runs of the fleet, as 'tracectl diff' compares those of a store.\vThe runs are pulled for as long as it "
        "takes. For other options of diff, pull the runs into a store.",
    .children = fleet_children,
};

/* Both runs, and their numbers in the store. */
static int pull_both(struct fleet *fleet, const char **words, char numbers[2][24], struct error *err)
{
    AUTO_STORE struct tracestore *store = NULL;
    int code = make_scratch(&store, err);

    for (int i = 0; i < 2 && !code; i++) {
        int64_t run_id = 0;
        bool is_new = false;

        code = fleet_find_run(fleet, words[i], &run_id, err);
        if (!code)
            code = fleet_pull_run(fleet, run_id, store, &is_new, err);
        snprintf(numbers[i], sizeof(numbers[i]), "%d", is_new ? i + 1 : 1);
    }
    return code;
}

static int run_diff(int argc, char **argv)
{
    struct fleet_arguments arguments = {0};
    char numbers[2][24], name[] = "tracectl diff";
    char *diff_argv[] = {name, numbers[0], numbers[1], NULL};
    struct fleet fleet;
    struct error err = {0};
    int code;

    cli_parse(&fleet_diff_command, argc, argv, &arguments);
    atexit(remove_scratch);
    code = fleet_connect(arguments.url, &fleet, &err);
    if (!code) {
        code = pull_both(&fleet, arguments.words, numbers, &err);
        fleet_close(&fleet);
    }
    free(arguments.words);
    if (code)
        return cli_fail(&err);
    cli.store_path = scratch;
    return cmd_diff.run(3, diff_argv);
}

const struct command fleet_diff_command = {
    .name = "fleet diff",
    .summary = "compare two runs of the fleet",
    .argp = &diff_argp,
    .examples =
        "Compare the newest runs of two names:\n"
        "  tracectl fleet diff before after\n",
    .run = run_diff,
};

/* ------------------------------------------------------------------------------------------ verify */

static const struct argp verify_argp = {
    .parser = fleet_parse_words,
    .args_doc = "[RUN...]",
    .doc =
        "Check runs of the fleet: pull each, decode every segment, and compare its numbers of threads and events with those "
        "that were shipped.\vWithout RUN all runs are checked. Exit status: 0 no problem, 1 some run is damaged, 3 failed.",
    .children = fleet_children,
};

static void print_problem(void *context, const struct tracestore_problem *problem)
{
    text_print(stdout, "run %s: %s\n", (const char *)context, problem->text);
}

/* Whether the run that is alone in the store has what the fleet says of it. */
static int check_totals(struct fleet *fleet, const char *word, struct tracestore *store, uint64_t *problems,
                        struct error *err)
{
    struct tracestore_totals totals;
    PGresult *result = NULL;
    int code = tracestore_run_totals(store, 1, &totals, err);

    if (!code)
        code = fleet_query(fleet, "cannot read the fleet", &result, err,
                           "SELECT threads, events FROM tracectl.runs WHERE run_id::text = $1", 1, &word);
    if (!code && PQntuples(result) &&
        (strtoull(PQgetvalue(result, 0, 0), NULL, 10) != totals.threads ||
         strtoull(PQgetvalue(result, 0, 1), NULL, 10) != totals.events)) {
        text_print(stdout,
                   "run %s: has %" PRIu64 " events on %" PRIu64 " threads, but %s on %s were shipped\n", word,
                   totals.events, totals.threads, PQgetvalue(result, 0, 1), PQgetvalue(result, 0, 0));
        (*problems)++;
    }
    PQclear(result);
    return code;
}

static int verify_run(struct fleet *fleet, const char *word, uint64_t *problems, struct error *err)
{
    AUTO_STORE struct tracestore *store = NULL;
    struct error why = {0};
    bool is_new;
    int code = make_scratch(&store, err), found = 0;

    if (!code)
        code = fleet_pull_run(fleet, strtoll(word, NULL, 10), store, &is_new, &why);
    if (code == -EBADMSG) {
        text_print(stdout, "run %s: %s\n", word, why.message);
        (*problems)++;
        code = 0;
    } else if (code) {
        *err = why.code ? why : *err;
    } else {
        found = tracestore_verify(store, print_problem, (void *)word, NULL, err);
        *problems += found > 0 ? (uint64_t)found : 0;
        code = found < 0 ? found : check_totals(fleet, word, store, problems, err);
    }
    tracestore_free(take_pointer(store));
    remove_scratch();
    return code;
}

static int verify(struct fleet *fleet, const struct fleet_arguments *arguments, uint64_t *runs,
                  uint64_t *problems, struct error *err)
{
    PGresult *result = NULL;
    int code = 0;

    if (!arguments->count)
        code = fleet_query(fleet, "cannot read the fleet", &result, err,
                           "SELECT run_id FROM tracectl.runs ORDER BY run_id", 0, NULL);
    *runs = arguments->count ? arguments->count : !code ? (uint64_t)PQntuples(result) : 0;
    for (uint64_t i = 0; i < *runs && !code; i++) {
        int64_t run_id;
        char number[24];

        code = fleet_find_run(fleet, arguments->count ? arguments->words[i] : PQgetvalue(result, (int)i, 0),
                              &run_id, err);
        snprintf(number, sizeof(number), "%lld", (long long)run_id);
        if (!code)
            code = verify_run(fleet, number, problems, err);
    }
    PQclear(result);
    return code;
}

static int run_verify(int argc, char **argv)
{
    struct fleet_arguments arguments = {0};
    uint64_t runs = 0, problems = 0;
    struct fleet fleet;
    struct error err = {0};
    int code;

    cli_parse(&fleet_verify_command, argc, argv, &arguments);
    atexit(remove_scratch);
    code = fleet_connect(arguments.url, &fleet, &err);
    if (!code) {
        code = verify(&fleet, &arguments, &runs, &problems, &err);
        fleet_close(&fleet);
    }
    free(arguments.words);
    if (code)
        return cli_fail(&err);
    if (cli.verbosity >= 0)
        text_print(stdout, "%" PRIu64 " run%s checked: %" PRIu64 " problem%s\n", runs, text_plural(runs),
                   problems, text_plural(problems));
    return cli_finish(problems ? EXIT_FOUND : EXIT_NOTHING_FOUND);
}

const struct command fleet_verify_command = {
    .name = "fleet verify",
    .summary = "check the runs of the fleet",
    .argp = &verify_argp,
    .examples =
        "Check the newest run of a name:\n"
        "  tracectl fleet verify nightly\n",
    .run = run_verify,
};
