/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl go check: what became of a Go program's goroutines. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "cli/common/output.h"
#include "cli/common/signals.h"
#include "cli/go/go_commands.h"
#include "cli/go/go_locks.h"
#include "cli/go/go_service.h"
#include "cli/go/go_session.h"
#include "cli/go/go_verdict.h"

struct arguments {
    const char *run; /* NULL: there is a command */
    struct go_session_options session;
    struct go_service_options service; /* with pids: neither a run nor a command */
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct arguments *arguments = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        go_session_defaults(&arguments->session);
        go_service_defaults(&arguments->service);
        state->child_inputs[0] = &arguments->session;
        state->child_inputs[1] = &arguments->service;
        return 0;
    case ARGP_KEY_ARG:
        if (pid_list_add_word(&arguments->service.pids, arg, state))
            return 0;
        if (cli_is_behind_dashes(state)) {
            arguments->session.command = state->argv + state->next - 1;
            state->next = state->argc;
        } else if (arguments->run) {
            argp_error(state, "unexpected argument '%s' (name one run)", arg);
        } else {
            arguments->run = arg;
        }
        return 0;
    case ARGP_KEY_END:
        if ((arguments->run != NULL) + (arguments->session.command != NULL) +
                (arguments->service.pids.count > 0) !=
            1)
            argp_error(state,
                       "no run, process or command given (go check RUN, go check -p PID, or go check "
                       "-- COMMAND)");
        if (arguments->service.duration_ns && !arguments->service.pids.count)
            argp_error(state, "--duration needs -p");
        if (arguments->session.command)
            go_session_check_command(arguments->session.command, "go check", state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child children[] = {
    {&go_session_argp, 0, NULL, 0}, {&go_service_argp, 0, NULL, 0}, {&cli_common_argp, 0, NULL, 0}, {0}};

static const struct argp argp = {
    .parser = parse,
    .args_doc = "RUN\n-p PID|NAME...\n-- COMMAND [ARG...]",
    .doc =
        "Report leaked and deadlocked goroutines of a Go program: of a recorded run, of a command, which "
        "is recorded for the check, or of running services.\vThe verdict is pass, leak (goroutines are "
        "blocked forever), global-deadlock (the main goroutine, or that of a test, is blocked forever), "
        "crash or timeout. Goroutines that were running or sleeping, or that could still have been "
        "unblocked, are listed as not finished; they do not affect the verdict.\n\n"
        "Goroutines of running services (-p) are grouped by where they were created and what they do. "
        "The verdict is leak if the number of goroutines in a group keeps growing while they wait for "
        "something that no goroutine does any more.\n\n"
        "Potential deadlocks from inconsistent lock order that did not happen (tracectl-go-locks(1)) are "
        "listed after the verdict and do not affect it.\n\n"
        "The exit status is 0 for pass and 1 for any other verdict. A recording that was ended by a "
        "signal, with or without its program, has no verdict (3).",
    .children = children,
};

/* What could have happened in a program but did not; what did is the verdict's. `array` NULL: as text. */
static int print_potential(struct tracestore *store, const struct go_judged *judged, json_t *array,
                           struct error *err)
{
    AUTO_FREE struct lock_cycle *cycles = NULL;
    struct go_place_source places = go_places_source(judged->places);
    const char *label = judged->program->label;
    size_t count = 0;
    bool complete;
    int r = go_locks_of(store, judged->program, judged->places, &cycles, &count, &complete, err);

    if (r < 0)
        return r;
    for (size_t i = 0; !r && i < count; i++) {
        if (cycles[i].happened)
            continue;
        if (array) {
            r = json_array_append_new(array, go_locks_json(&cycles[i], label, places)) ? -ENOMEM : 0;
        } else {
            putchar('\n');
            r = go_locks_text(&cycles[i], label, places);
        }
    }
    return r < 0 ? error_set(err, r, NULL, "reading the locks of goroutines") : 0;
}

static int print(struct tracestore *store, const struct tracestore_run *run,
                 const struct go_judged_run *judged, struct error *err)
{
    AUTO_JSON json_t *document = cli.json ? go_verdict_json(judged) : NULL;
    json_t *potential = cli.json ? json_array() : NULL;
    int r = 0;

    if (cli.json)
        json_object_set_new(document, "potential", potential);
    else
        go_verdict_text(stdout, judged);
    for (size_t i = 0; !r && i < judged->count; i++)
        r = print_potential(store, &judged->judged[i], potential, err);
    if (r < 0 || !cli.json)
        return r;
    json_object_set_new(document, "run", json_integer(run->run_id));
    json_object_set_new(document, "name", cli_json_text(run->name));
    cli_json_print(document);
    return 0;
}

/* Records the command; the run is the store's newest then. */
static int record(const struct go_session_options *options, char *ret_name, size_t size, struct error *err)
{
    const struct go_schedule schedule = {.stop_exit = options->drain_ns > 0};
    AUTO_STORE struct tracestore *store = NULL;
    struct go_session *session = NULL;
    int64_t run_id = 0;
    int r = tracestore_open(cli.store_path, TRACESTORE_CREATE, &store, err);

    if (!r)
        r = go_session_open(store, options, &session, err);
    if (!r)
        r = go_session_execute(session, &schedule, err);
    if (r >= 0)
        r = go_session_close(session, &run_id, err);
    go_session_free(session);
    snprintf(ret_name, size, "%lld", (long long)run_id);
    return r;
}

/* Whether a signal for tracectl ended the recording, or the program that it was passed on to: what would have
 * become of the goroutines is not known then. A program that ends by itself upon a signal has a verdict. */
static bool is_interrupted(const struct go_judged_run *judged)
{
    bool killed = signals_stopped_by() != 0;

    for (size_t i = 0; signals_came() && i < judged->count; i++) {
        int number = judged->judged[i].verdict.signal;

        killed |= number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
    }
    return killed;
}

static int run(int argc, char **argv)
{
    CLEANUP(go_judged_run_release) struct go_judged_run judged = {0};
    AUTO_STORE struct tracestore *store = NULL;
    AUTO_RUN struct tracestore_run run = {0};
    struct arguments arguments = {0};
    struct error err = {0};
    char name[24];

    cli_parse(&go_check_command, argc, argv, &arguments);
    if (arguments.service.pids.count) {
        int status;

        arguments.service.name = arguments.session.name;
        status = go_service_check(&arguments.service);
        go_service_options_release(&arguments.service);
        return status;
    }
    if (arguments.session.command) {
        if (record(&arguments.session, name, sizeof(name), &err) < 0)
            return cli_fail(&err);
        arguments.run = name;
    }
    if (cli_open_run(arguments.run, TRACESTORE_READ, &store, &run, &err) < 0 ||
        go_judge_run(store, run.run_id, &judged, &err) < 0)
        return cli_fail(&err);
    if (arguments.session.command && is_interrupted(&judged)) {
        error_say(&err, -EINTR, "go check was interrupted: no verdict (the recorded part is run %s)", name);
        return cli_fail(&err);
    }
    if (print(store, &run, &judged, &err) < 0)
        return cli_fail(&err);
    return cli_finish(judged.kind == GO_VERDICT_PASS ? EXIT_NOTHING_FOUND : EXIT_FOUND);
}

const struct command go_check_command = {
    .name = "go check",
    .summary = "report leaks and deadlocks of goroutines",
    .argp = &argp,
    .examples =
        "Check a command:\n"
        "  tracectl go check -- ./server\n"
        "Check a running service for ten minutes:\n"
        "  tracectl go check -p 1234 --duration 10m\n"
        "Check the tests of a module:\n"
        "  go test -exec 'tracectl go check --' ./...\n",
    .argp_flags = ARGP_IN_ORDER, /* the options behind the command are the command's */
    .run = run,
};
