/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the daemon tells of itself: JSON for people's tools, Prometheus's text format for monitoring. */
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "collector/daemon/state.h"

/* ------------------------------------------------------------------------------------ status */

/* Names and paths are any bytes. */
static json_t *text_json(const char *text)
{
    AUTO_FREE char *valid = text_valid(text);

    return json_string(valid ? valid : "?"); /* no memory */
}

static json_t *hot_functions(const struct worker_figures *figures)
{
    json_t *list = json_array();

    for (size_t i = 0; i < figures->hot_count; i++)
        json_array_append_new(list, json_pack("{s:o, s:f, s:s}", "name", text_json(figures->hot[i].name),
                                              "calls_per_second", figures->hot[i].calls_per_second, "state",
                                              record_state_name(figures->hot[i].state)));
    return list;
}

static json_t *recording(const struct worker *worker, uint64_t now)
{
    const struct worker_figures *figures = worker_figures(worker);

    return json_pack("{s:s, s:I, s:o, s:I, s:I, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:o}", "target",
                     worker->target, "pid", (json_int_t)worker->process.pid, "path",
                     text_json(worker->process.path), "recorder", (json_int_t)worker->pid, "run",
                     (json_int_t)figures->run, "seconds", (double)(now - worker->begun_ns) / 1e9, "processes",
                     (json_int_t)figures->process_count, "calls", (json_int_t)figures->recorded,
                     "missed_calls", (json_int_t)figures->missed, "functions_out",
                     (json_int_t)figures->budget.out, "memory_bytes", (json_int_t)worker->memory_bytes,
                     "commits", (json_int_t)figures->commits, "state",
                     worker->stopping ? "ending"
                                      : (!figures->begun      ? "beginning"
                                         : figures->is_flight ? "flight"
                                                              : "recording"),
                     "functions", hot_functions(figures));
}

static json_t *excluded_json(const struct left_out *left)
{
    return json_pack("{s:s, s:I, s:I, s:I}", "target", left->target, "uid", (json_int_t)left->user, "pid",
                     (json_int_t)left->pid, "processes", (json_int_t)left->processes);
}

static char *status(const struct service *service)
{
    const uint64_t now = clock_ns(CLOCK_MONOTONIC);
    const struct service_counters *counters = &service->counters;
    json_t *recordings = json_array(), *targets = json_array(), *left_out = json_array(), *document;
    char *text;

    for (size_t i = 0; i < service->worker_count; i++)
        json_array_append_new(recordings, recording(&service->workers[i], now));
    for (size_t i = 0; i < service->excluded_count; i++)
        json_array_append_new(left_out, excluded_json(&service->left_out[i]));
    for (size_t i = 0; i < service->config.target_count; i++)
        json_array_append_new(targets, json_string(service->config.targets[i].name));
    document = json_pack(
        "{s:f, s:s, s:o, s:o, s:f, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}",
        "seconds", (double)(now - service->begun_ns) / 1e9, "store", service->config.store, "targets",
        targets, "recordings", recordings, "cpu_percent", 100 * service->cpu, "cpu_limit_percent",
        100 * service->config.cpu, "memory_bytes", (json_int_t)service->memory_bytes, "memory_limit_bytes",
        (json_int_t)service->config.memory_bytes, "store_bytes", (json_int_t)service->store_bytes,
        "store_limit_bytes", (json_int_t)service->config.store_bytes, "begun", (json_int_t)counters->begun,
        "ended", (json_int_t)counters->ended, "failed", (json_int_t)counters->failed, "reloads",
        (json_int_t)counters->reloads, "bad_reloads", (json_int_t)counters->bad_reloads, "max_recordings",
        (json_int_t)service->config.max_recordings, "refused", (json_int_t)counters->refused, "left_out",
        left_out);
    if (!document)
        return NULL;
    text = json_dumps(document, JSON_INDENT(2));
    json_decref(document);
    return text;
}

/* ------------------------------------------------------------------------------------ metrics */

static void describe(FILE *out, const char *name, const char *type, const char *help)
{
    fprintf(out, "# HELP tracectl_%s %s\n# TYPE tracectl_%s %s\n", name, help, name, type);
}

static void metric(FILE *out, const char *name, const char *type, const char *help, double value)
{
    describe(out, name, type, help);
    fprintf(out, "tracectl_%s %.17g\n", name, value);
}

/* Label values cannot break a line: targets have plain names. */
static void per_recording(FILE *out, const struct service *service, const char *name, const char *help,
                          double (*value)(const struct worker *worker))
{
    describe(out, name, "gauge", help);
    for (size_t i = 0; i < service->worker_count; i++)
        fprintf(out, "tracectl_%s{target=\"%s\",pid=\"%d\"} %.17g\n", name, service->workers[i].target,
                (int)service->workers[i].process.pid, value(&service->workers[i]));
}

static double processes(const struct worker *worker)
{
    return (double)worker_figures(worker)->process_count;
}

static double calls(const struct worker *worker)
{
    return (double)worker_figures(worker)->recorded;
}

static double missed_calls(const struct worker *worker)
{
    return (double)worker_figures(worker)->missed;
}

static double functions_out(const struct worker *worker)
{
    return (double)worker_figures(worker)->budget.out;
}

static double probe_seconds(const struct worker *worker)
{
    return (double)worker_figures(worker)->budget.estimated_ns / 1e9;
}

static double target_seconds(const struct worker *worker)
{
    return (double)worker_figures(worker)->budget.cpu_ns / 1e9;
}

static void stops(FILE *out, const struct service_counters *counters)
{
    describe(out, "limit_stops_total", "counter", "Recordings ended by a limit.");
    fprintf(out, "tracectl_limit_stops_total{limit=\"cpu\"} %" PRIu64 "\n", counters->stopped_cpu);
    fprintf(out, "tracectl_limit_stops_total{limit=\"memory\"} %" PRIu64 "\n", counters->stopped_memory);
    fprintf(out, "tracectl_limit_stops_total{limit=\"store\"} %" PRIu64 "\n", counters->stopped_store);
}

static void own_figures(FILE *out, const struct service *service)
{
    uint64_t cpu_ns = service->past_cpu_ns;

    for (size_t i = 0; i < service->worker_count; i++)
        cpu_ns += service->workers[i].cpu_ns;
    metric(out, "up_seconds", "gauge", "Time since the daemon started.",
           (double)(clock_ns(CLOCK_MONOTONIC) - service->begun_ns) / 1e9);
    metric(out, "targets", "gauge", "Configured targets.", (double)service->config.target_count);
    metric(out, "recordings", "gauge", "Active recordings.", (double)service->worker_count);
    metric(out, "recorder_cpu_seconds_total", "counter", "Processor time used by recorders.",
           (double)cpu_ns / 1e9);
    metric(out, "recorder_memory_bytes", "gauge", "Memory used by recorders.", (double)service->memory_bytes);
    metric(out, "store_bytes", "gauge", "Disk space used by the files of the store.",
           (double)service->store_bytes);
    metric(out, "store_limit_bytes", "gauge", "Limit of the disk space of the store.",
           (double)service->config.store_bytes);
}

static char *metrics(const struct service *service)
{
    const struct service_counters *counters = &service->counters;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return NULL;
    own_figures(out, service);
    metric(out, "recordings_begun_total", "counter", "Recordings started.", (double)counters->begun);
    metric(out, "recordings_ended_total", "counter", "Recordings ended cleanly.", (double)counters->ended);
    metric(out, "recordings_failed_total", "counter", "Recordings that failed.", (double)counters->failed);
    metric(out, "refused_total", "counter", "Processes skipped because max-recordings was reached.",
           (double)counters->refused);
    metric(out, "reloads_total", "counter", "Successful configuration reloads.", (double)counters->reloads);
    metric(out, "bad_reloads_total", "counter", "Rejected configurations.", (double)counters->bad_reloads);
    metric(out, "denied_total", "counter", "Connections rejected because they came from other users.",
           (double)counters->denied);
    stops(out, counters);
    per_recording(out, service, "processes", "Processes being recorded.", processes);
    per_recording(out, service, "calls", "Calls recorded in this run (0 without a budget).", calls);
    per_recording(out, service, "missed_calls", "Calls in this run that were excluded by the budget.",
                  missed_calls);
    per_recording(out, service, "functions_out", "Functions without probes to stay within the budget.",
                  functions_out);
    per_recording(out, service, "probe_seconds", "Processor time of the target used by probes (estimate).",
                  probe_seconds);
    per_recording(out, service, "target_cpu_seconds", "Processor time of the target, including probes.",
                  target_seconds);
    return fclose(out) ? NULL : text;
}

static char *say(const char *key, json_t *value)
{
    json_t *document = json_pack("{s:o}", key, value);
    char *text = document ? json_dumps(document, 0) : NULL;

    json_decref(document);
    return text;
}

/* ------------------------------------------------------------------------------------ commits */

/* Has the flight recorders of a target make runs of what they have. */
static char *commit(const struct service *service, const char *name)
{
    const struct service_target *target = service_config_find(&service->config, name);
    unsigned asked = 0;

    if (!target)
        return say("error", json_string("no such target"));
    if (!target->flight_ns)
        return say("error", json_string("the target keeps everything (it has no flight = TIME)"));
    for (size_t i = 0; i < service->worker_count; i++) {
        const struct worker *worker = &service->workers[i];

        if (strcmp(worker->target, name) != 0 || worker->stopping || !worker_figures(worker)->begun)
            continue;
        asked += !kill(worker->pid, SIGUSR1);
    }
    return say("asked", json_integer(asked));
}

char *service_answer(void *context, const char *word)
{
    const struct service *service = context;

    if (!strncmp(word, "commit ", 7))
        return commit(service, word + 7);

    if (!strcmp(word, "status"))
        return status(service);
    return !strcmp(word, "metrics") ? metrics(service) : NULL;
}
