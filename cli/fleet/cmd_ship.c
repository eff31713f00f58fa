/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl ship: the ended runs of a store into a fleet. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "base/array.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/common/output.h"
#include "cli/fleet/fleet_commands.h"
#include "store/bytes/id_map.h"

#define FOLLOW_SECONDS 2 /* --follow checks for ended runs at this interval */

struct ship_arguments {
    struct fleet_arguments fleet; /* first: fleet_parse_words() takes it for the whole */
    bool follow;
};

/* What has been done, and the runs that need not be tried again. */
struct shipping {
    const struct ship_arguments *arguments;
    struct fleet fleet;
    struct id_map done; /* by run_id */
    uint64_t shipped, present, refused;
};

/* A run that has ended; one of a job may still grow, and is looked at each time. */
struct ended_run {
    int64_t run_id;
    bool grows;
};

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
    stopped = 1;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct ship_arguments *arguments = state->input;

    switch (key) {
    case 'f':
        arguments->follow = true;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "unexpected argument '%s'", arg);
        return EINVAL;
    default:
        return fleet_parse_words(key, arg, state);
    }
}

static const struct argp_option options[] = {
    {"follow", 'f', NULL, 0, "Continue: ship each run when it has ended, until Ctrl-C", 2},
    {0},
};
static const struct argp argp = {
    .options = options,
    .parser = parse,
    .doc =
        "Add the ended runs of the store to a fleet.\vA run is added once, however often it is shipped, and wholly or not at "
        "all, whenever shipper or server are killed. A run that cannot be read is reported and skipped; the others are "
        "shipped. With --follow, a connection that breaks is made again. Exit status: 0 all ended runs are in the fleet, 1 "
        "some could not be read, 3 failed.",
    .children = fleet_children,
};

/* ------------------------------------------------------------------------------------------ one pass */

static int note_done(struct shipping *shipping, int64_t run_id, struct error *err)
{
    return id_map_set(&shipping->done, run_id, run_id) ? error_no_memory(err) : 0;
}

/* Runs that have ended, from the store; parts that have not joined their job's run yet are left out. */
static int ended_runs(struct ended_run **ret_runs, size_t *ret_count, struct error *err)
{
    AUTO_STORE struct tracestore *store = NULL;
    AUTO_STATEMENT *row = NULL;
    size_t capacity = 0;
    int code = cli_open_store(TRACESTORE_READ, &store, err);

    if (!code)
        code = cli_prepare(
            store, &row, err,
            "SELECT run_id, EXISTS (SELECT 1 FROM main.tags t WHERE t.run_id = runs.run_id AND key = '" TRACESTORE_JOB_TAG
            "') FROM main.runs WHERE ended_ns NOTNULL AND run_id NOT IN (SELECT run_id FROM"
            " main.journal) AND run_id NOT IN (SELECT run_id FROM main.tags WHERE key"
            " = '" TRACESTORE_JOB_PART_TAG "') ORDER BY run_id",
            0);
    while (!code && !(code = cli_step(row, "ii", err))) {
        if (array_reserve(ret_runs, &capacity, *ret_count + 1))
            return error_no_memory(err);
        (*ret_runs)[(*ret_count)++] =
            (struct ended_run){.run_id = sqlite3_column_int64(row, 0), .grows = sqlite3_column_int(row, 1)};
    }
    return code < 0 ? code : 0;
}

/* A run that is damaged does not keep others from the fleet. */
static int ship_one(struct shipping *shipping, const struct ended_run *run, struct error *err)
{
    struct error why = {0};
    bool is_new = false;
    int code = fleet_ship_run(&shipping->fleet, cli.store_path, run->run_id, &is_new, &why);

    if (code == -EBADMSG || code == -ENOTSUP) {
        text_print(stderr, "tracectl: run %" PRId64 " is not shipped: %s\n", run->run_id, why.message);
        shipping->refused++;
        return note_done(shipping, run->run_id, err);
    }
    if (code) {
        *err = why;
        return code;
    }
    shipping->shipped += is_new;
    shipping->present += !is_new;
    return run->grows ? 0 : note_done(shipping, run->run_id, err);
}

static int ship_all(struct shipping *shipping, struct error *err)
{
    AUTO_FREE struct ended_run *runs = NULL;
    size_t count = 0;
    int code = ended_runs(&runs, &count, err);

    for (size_t i = 0; i < count && !code && !stopped; i++)
        if (!id_map_number(&shipping->done, runs[i].run_id))
            code = ship_one(shipping, &runs[i], err);
    return code;
}

/* ------------------------------------------------------------------------------------------ all passes */

static int connect_again(struct shipping *shipping, struct error *err)
{
    fleet_close(&shipping->fleet);
    return fleet_connect(shipping->arguments->fleet.url, &shipping->fleet, err);
}

/* With a fleet that is away for a while, runs wait in the store. */
static int follow(struct shipping *shipping, struct error *err)
{
    bool connected = true, reported = false;
    int code;

    while (!stopped) {
        code = connected ? ship_all(shipping, err) : connect_again(shipping, err);
        connected = code != -ECONNRESET && code != -ECONNREFUSED;
        if (code && connected)
            return code;
        if (!connected && !reported)
            text_print(stderr, "tracectl: %s; trying again\n", err->message);
        reported = !connected;
        nanosleep(&(struct timespec){.tv_sec = FOLLOW_SECONDS}, NULL);
    }
    return 0;
}

static void report(const struct shipping *shipping)
{
    if (cli.json) {
        AUTO_JSON json_t *document =
            json_pack("{s:I, s:I, s:I}", "shipped", (json_int_t)shipping->shipped, "present",
                      (json_int_t)shipping->present, "refused", (json_int_t)shipping->refused);

        cli_json_print(document);
    } else if (cli.verbosity >= 0) {
        text_print(stdout, "%'" PRIu64 " run%s shipped", shipping->shipped, text_plural(shipping->shipped));
        if (shipping->present)
            text_print(stdout, ", %'" PRIu64 " in the fleet already", shipping->present);
        if (shipping->refused)
            text_print(stdout, ", %'" PRIu64 " refused", shipping->refused);
        putchar('\n');
    }
}

static int run(int argc, char **argv)
{
    struct ship_arguments arguments = {0};
    struct shipping shipping = {.arguments = &arguments};
    const struct sigaction action = {.sa_handler = stop};
    struct error err = {0};
    int code;

    cli_parse(&cmd_ship, argc, argv, &arguments);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    code = fleet_connect(arguments.fleet.url, &shipping.fleet, &err);
    if (!code) {
        code = arguments.follow ? follow(&shipping, &err) : ship_all(&shipping, &err);
        fleet_close(&shipping.fleet);
    }
    if (!code)
        report(&shipping);
    id_map_release(&shipping.done);
    return code ? cli_fail(&err) : cli_finish(shipping.refused ? EXIT_FOUND : EXIT_NOTHING_FOUND);
}

const struct command cmd_ship = {
    .name = "ship",
    .summary = "add the ended runs of the store to a fleet",
    .argp = &argp,
    .examples =
        "Keep a fleet up to date with what this host records:\n"
        "  tracectl -d /var/lib/tracectl/runs.db ship --follow -t service=traces\n",
    .run = run,
};
