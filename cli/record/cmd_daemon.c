/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl daemon: records the processes of a configuration as they come and go; or asks such a daemon. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/output.h"
#include "cli/common/table.h"
#include "collector/daemon/config.h"
#include "collector/daemon/control.h"
#include "collector/daemon/match.h"
#include "collector/daemon/service.h"

struct daemon_input {
    const char *config;
    bool check, status, metrics;
    const char *commit; /* a target */
};

enum { KEY_CHECK = 256, KEY_STATUS, KEY_METRICS, KEY_COMMIT };

static const struct argp_option options[] = {
    {"config", 'c', "FILE", 0, "The configuration file (see docs/daemon.md)", 1},
    {"check", KEY_CHECK, 0, 0, "Check FILE and print how many processes each target matches now", 1},
    {"status", KEY_STATUS, 0, 0, "Print what the daemon of FILE is recording", 1},
    {"metrics", KEY_METRICS, 0, 0, "Print the daemon's metrics in Prometheus text format", 1},
    {"commit", KEY_COMMIT, "TARGET", 0,
     "Store the windows of this target's flight recorders (flight = TIME) as runs", 1},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct daemon_input *input = state->input;

    switch (key) {
    case 'c':
        input->config = arg;
        return 0;
    case KEY_CHECK:
        input->check = true;
        return 0;
    case KEY_STATUS:
        input->status = true;
        return 0;
    case KEY_METRICS:
        input->metrics = true;
        return 0;
    case KEY_COMMIT:
        input->commit = arg;
        return 0;
    case ARGP_KEY_ARG:
        argp_usage(state);
        return 0;
    case ARGP_KEY_END:
        if (!input->config)
            argp_error(state, "no configuration given (-c FILE)");
        if (input->check + input->status + input->metrics + (input->commit != NULL) > 1)
            argp_error(state, "name only one of --check, --status, --metrics and --commit");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "-c FILE",
    .doc =
        "Record the processes named in a configuration whenever they run, within limits, until SIGTERM. "
        "SIGHUP reloads the configuration; an invalid one is ignored. The log goes to standard error.",
    .children = cli_common_children,
};

static void print_recording(struct table *table, json_t *recording)
{
    table_cell(table, json_string_value(json_object_get(recording, "target")));
    table_cell_count(table, (uint64_t)json_integer_value(json_object_get(recording, "pid")));
    table_cell(table, json_string_value(json_object_get(recording, "state")));
    table_cell_count(table, (uint64_t)json_integer_value(json_object_get(recording, "run")));
    table_cell_count(table, (uint64_t)json_integer_value(json_object_get(recording, "processes")));
    table_cell_count(table, (uint64_t)json_integer_value(json_object_get(recording, "calls")));
    table_cell_count(table, (uint64_t)json_integer_value(json_object_get(recording, "missed_calls")));
    table_cell_count(table, (uint64_t)json_integer_value(json_object_get(recording, "functions_out")));
    table_cell(table, json_string_value(json_object_get(recording, "path")));
}

static int print_status(const char *answer, struct error *err)
{
    static const char *const titles[] = {"TARGET", ">PID",    "STATE", ">RUN", ">PROCESSES",
                                         ">CALLS", ">MISSED", ">OUT",  "PATH"};
    AUTO_JSON json_t *document = json_loads(answer, 0, NULL);
    json_t *recordings = json_object_get(document, "recordings"), *recording;
    json_t *left_out = json_object_get(document, "left_out"), *left;
    char store[32], memory[32];
    struct table *table;
    size_t i;

    if (!json_is_array(recordings))
        return error_say(err, -EPROTO, "unexpected answer from the daemon (is it another version?)");
    cli_format_bytes((uint64_t)json_integer_value(json_object_get(document, "store_bytes")), store,
                     sizeof(store));
    cli_format_bytes((uint64_t)json_integer_value(json_object_get(document, "memory_bytes")), memory,
                     sizeof(memory));
    text_print(stdout, "%zu target(s), %zu recording(s); %.1f%% of a processor, %s of memory, store %s\n",
               json_array_size(json_object_get(document, "targets")), json_array_size(recordings),
               json_number_value(json_object_get(document, "cpu_percent")), memory, store);
    json_array_foreach(left_out, i, left)
    {
        text_print(
            stdout,
            "not recorded, all %lld places are taken: %lld processes of target %s, user %lld (pid %lld)\n",
            (long long)json_integer_value(json_object_get(document, "max_recordings")),
            (long long)json_integer_value(json_object_get(left, "processes")),
            json_string_value(json_object_get(left, "target")),
            (long long)json_integer_value(json_object_get(left, "uid")),
            (long long)json_integer_value(json_object_get(left, "pid")));
    }
    if (!json_array_size(recordings))
        return 0;
    table = table_new(stdout, titles, ARRAY_SIZE(titles), cli_colour());
    json_array_foreach(recordings, i, recording)
    {
        print_recording(table, recording);
    }
    return table_free(table) < 0 ? error_no_memory(err) : 0;
}

/* JSON or metrics, as the daemon has made them. */
static void print_answer(const char *answer, const char *end)
{
    text_put_raw(stdout, answer);
    text_put_raw(stdout, end);
}

/* The daemon's answer to "commit TARGET". */
static int print_commit(const struct daemon_input *input, const char *answer, struct error *err)
{
    AUTO_JSON json_t *document = json_loads(answer, 0, NULL);
    const char *error = json_string_value(json_object_get(document, "error"));
    json_int_t asked = json_integer_value(json_object_get(document, "asked"));

    if (error)
        return error_say(err, -EINVAL, "cannot commit target %.64s: %s", input->commit, error);
    if (!asked)
        return error_say(err, -ESRCH, "cannot commit target %.64s: it is not being recorded", input->commit);
    if (cli.json)
        print_answer(answer, "\n");
    else
        text_print(stdout, "commit requested from %lld flight recorder%s of target %s\n", (long long)asked,
                   asked == 1 ? "" : "s", input->commit);
    return 0;
}

static void print_counts_json(const struct service_config *config, const size_t *counts)
{
    AUTO_JSON json_t *document = json_object();
    json_t *targets = json_array();

    for (size_t i = 0; i < config->target_count; i++)
        json_array_append_new(targets, json_pack("{s:s, s:I}", "target", config->targets[i].name, "processes",
                                                 (json_int_t)counts[i]));
    json_object_set_new(document, "targets", targets);
    cli_json_print(document);
}

/* What each target of a valid configuration matches at this moment. */
static int print_check(const struct service_config *config, struct error *err)
{
    AUTO_FREE size_t *counts = calloc(config->target_count + 1, sizeof(*counts));

    if (!counts)
        return error_no_memory(err);
    service_count_processes(config, counts);
    if (cli.json)
        print_counts_json(config, counts);
    for (size_t i = 0; i < config->target_count && !cli.json && cli.verbosity >= 0; i++)
        text_print(stdout, "%s: %zu process%s\n", config->targets[i].name, counts[i],
                   counts[i] == 1 ? "" : "es");
    if (geteuid() && cli.verbosity >= 0)
        text_print(stderr, "tracectl: only processes of this user were examined (run as root)\n");
    return 0;
}

static int ask(const struct daemon_input *input, struct error *err)
{
    AUTO_FREE char *answer = NULL;
    struct service_config config;
    char word[96];
    int r = service_config_read(input->config, &config, err);

    if (r)
        return r;
    if (input->check) {
        r = print_check(&config, err);
        service_config_release(&config);
        return r;
    }
    if (input->commit)
        snprintf(word, sizeof(word), "commit %.64s", input->commit);
    else
        snprintf(word, sizeof(word), "%s", input->status ? "status" : "metrics");
    r = control_ask(config.socket, word, &answer, err);
    service_config_release(&config);
    if (!r && input->commit)
        return print_commit(input, answer, err);
    if (!r && input->status && !cli.json)
        r = print_status(answer, err);
    else if (!r)
        print_answer(answer, input->status ? "\n" : "");
    return r;
}

static int run(int argc, char **argv)
{
    struct daemon_input input = {0};
    struct error err = {0};
    int r;

    cli_parse(&cmd_daemon, argc, argv, &input);
    if (input.check || input.status || input.metrics || input.commit)
        r = ask(&input, &err);
    else
        r = service_run(input.config, &err);
    return r < 0 ? cli_fail(&err) : cli_finish(EXIT_NOTHING_FOUND);
}

const struct command cmd_daemon = {
    .name = "daemon",
    .summary = "record processes in the background, within limits",
    .argp = &argp,
    .examples =
        "Check a configuration, then run the daemon:\n"
        "  tracectl daemon --check -c /etc/tracectl.conf\n"
        "  tracectl daemon -c /etc/tracectl.conf\n"
        "Print what it is recording:\n"
        "  tracectl daemon --status -c /etc/tracectl.conf\n",
    .run = run,
};
