/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/daemon/worker.h"

#include <errno.h>
#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "collector/daemon/log.h"
#include "collector/process/proc_numbers.h"
#include "collector/recording/recorder.h"
#include "image/functions/function_names.h"

static struct recorder *running;
static volatile sig_atomic_t stop_requested;
static volatile sig_atomic_t commit_requested;

struct choice {
    bool has_only, has_exclude;
    regex_t only, exclude;
    struct flight_trigger *triggers; /* their functions are chosen, too */
    size_t trigger_count;
};

/* ------------------------------------------------------------------------------------ which functions */

static bool wants(void *context, struct elf_image *image, const struct image_function *function)
{
    const struct choice *choice = context;

    for (size_t i = 0; i < choice->trigger_count; i++)
        if (flight_trigger_wants(&choice->triggers[i], function))
            return true;
    return (!choice->has_only || image_function_matching_name(function, &choice->only)) &&
           (!choice->has_exclude || !image_function_matching_name(function, &choice->exclude));
}

/* The expressions are those that the configuration's parser has compiled before. */
static void choose(const struct service_target *target, struct choice *ret_choice)
{
    *ret_choice = (struct choice){0};
    if (target->functions)
        ret_choice->has_only = !regcomp(&ret_choice->only, target->functions, REG_EXTENDED | REG_NOSUB);
    if (target->exclude)
        ret_choice->has_exclude = !regcomp(&ret_choice->exclude, target->exclude, REG_EXTENDED | REG_NOSUB);
}

/* ------------------------------------------------------------------------------------ figures */

static void list_processes(const struct recorder *recorder, struct worker_figures *figures)
{
    AUTO_PROC_NUMBERS pids;
    pid_t pid;

    proc_numbers_open(&pids, "/proc");
    while (figures->process_count < WORKER_PIDS && (pid = proc_numbers_next(&pids)) > 0)
        if (recorder_knows_process(recorder, pid))
            figures->processes[figures->process_count++] =
                (struct service_identity){pid, service_process_started(pid)};
}

static void list_functions(const struct recorder *recorder, struct worker_figures *figures)
{
    AUTO_FREE struct budget_function_status *functions = NULL;
    size_t count = 0;

    figures->has_budget = recorder_budget_totals(recorder, &figures->budget);
    if (recorder_budget_functions(recorder, &functions, &count, NULL))
        return;
    for (size_t i = 0; i < count; i++) {
        figures->recorded += functions[i].recorded;
        figures->missed += functions[i].missed;
        if (figures->hot_count == WORKER_HOT)
            continue;
        struct worker_function *hot = &figures->hot[figures->hot_count++];
        snprintf(hot->name, sizeof(hot->name), "%s", functions[i].name);
        hot->state = functions[i].state;
        hot->calls_per_second = functions[i].calls_per_second;
    }
}

static void publish(const struct recorder *recorder, const struct flight *flight, struct worker_page *page)
{
    unsigned other = !page->current;
    struct worker_figures *figures = &page->copies[other];
    struct trace_writer_memory memory = recorder_memory(recorder);

    memset(figures, 0, sizeof(*figures));
    figures->begun = true;
    figures->is_flight = flight != NULL;
    figures->run = flight ? flight_counts(flight).last_run : recorder_run_id(recorder);
    figures->commits = flight ? flight_counts(flight).commits : 0;
    figures->stored_threads = recorder_counts(recorder).stored_threads;
    figures->segments_closed_early = memory.closed_early;
    figures->dropped_runs = recorder_dropped_runs(recorder);
    list_processes(recorder, figures);
    list_functions(recorder, figures);
    __atomic_store_n(&page->current, other, __ATOMIC_RELEASE);
}

/* ------------------------------------------------------------------------------------ the recording */

static void on_commit(int number)
{
    commit_requested = 1;
}

static void on_signal(int number)
{
    stop_requested = 1;
    if (running)
        recorder_stop(running);
}

/* SIGTERM ends the recording; so does the end of the daemon. What else reaches its process group, a Ctrl-C
 * for instance, is the daemon's to answer. */
static void read_signals(pid_t daemon)
{
    const struct sigaction action = {.sa_handler = on_signal}, commit = {.sa_handler = on_commit};
    sigset_t none;

    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGUSR1, &commit, NULL);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != daemon)
        stop_requested = 1;
}

/* In slices, between which the figures are renewed. */
static int run_slices(struct recorder *recorder, const struct flight *flight,
                      const struct worker_order *order, struct error *err)
{
    const uint64_t begun = clock_ns(CLOCK_MONOTONIC);
    bool ended = false;
    int r = 0;

    while (!r && !stop_requested && !ended && getppid() == order->daemon) {
        uint64_t now = clock_ns(CLOCK_MONOTONIC);

        publish(recorder, flight, order->page);
        if (flight && commit_requested) {
            commit_requested = 0;
            recorder_commit(recorder);
        }
        if (now - begun >= order->target->rotate_ns)
            break;
        r = recorder_run(recorder, order->slice_ns, err);
        ended = clock_ns(CLOCK_MONOTONIC) - now < order->slice_ns;
    }
    return r;
}

static int tag(struct recorder *recorder, const struct worker_order *order, struct error *err)
{
    char pid[16];
    int r = recorder_tag(recorder, "target", order->target->name, err);

    snprintf(pid, sizeof(pid), "%d", (int)order->process->pid);
    return r ? r : recorder_tag(recorder, "attached", pid, err);
}

/* Ends a run that has failed as well as it goes. */
static void give_up(struct recorder *recorder, int why)
{
    recorder_detach(recorder);
    if (!recorder_counts(recorder).stored_threads)
        recorder_abandon(recorder, NULL);
    else if (why == -ENOSPC)
        recorder_close_full(recorder, NULL);
}

static int record(struct recorder *recorder, const struct flight *flight, const struct worker_order *order,
                  struct error *err)
{
    int r = tag(recorder, order, err);

    if (!r)
        r = recorder_attach(recorder, order->process->pid, err);
    running = recorder;
    if (!r)
        r = run_slices(recorder, flight, order, err);
    running = NULL;
    signal(SIGTERM, SIG_IGN); /* the rest is short and must not be cut off */
    if (!r)
        r = recorder_close(recorder, err);
    if (r && !flight)
        give_up(recorder, r);
    return r;
}

/* `flight`: its window is the store; NULL: there is none. */
static int record_into(struct tracestore *store, struct flight *flight, const struct choice *choice,
                       const struct worker_order *order, struct error *err)
{
    const struct service_config *config = order->config;
    const struct recorder_options options = {
        .run.name = order->target->name,
        .run.command = order->process->path,
        .run.options = "daemon",
        .content.times = STREAM_TIMES_ANCHOR,
        .limits.budget = order->target->budget,
        .targets.follow_children = true,
        .content.skip_environment = true,
        .targets.no_hold = true, /* services wait for their children: none is to be stopped */
        /* Half of it for compressing, half for the rest. */
        .limits.memory_bytes = (size_t)(config->memory_bytes / 2 / config->max_recordings),
        .storage.flight = flight,
        .storage.room = {.keep = {.bytes = flight ? 0 : config->store_bytes / 4 * 3}, .drop_oldest = !flight},
        .targets.output = -1,
        .selected.want = wants,
        .selected.context = (void *)choice,
    };
    struct recorder *recorder;
    int r;

    r = recorder_open(store, &options, &recorder, err);
    if (r)
        return r;
    r = record(recorder, flight, order, err);
    if (flight) {
        struct error late = {0};
        bool failed = r && recorder_counts(recorder).stored_threads;

        if (r)
            recorder_detach(recorder);
        if (flight_finish(flight, failed, &late) && !r)
            r = error_say(err, late.code, "%s", late.message);
        publish(recorder, flight, order->page);
    }
    recorder_free(recorder);
    return r;
}

static void say_commit(void *context, const struct flight_report *report)
{
    const struct worker_order *order = context;

    if (*report->error)
        service_log("error", "commit-failed", "target", order->target->name, "trigger", report->trigger,
                    "why", report->error);
    else
        service_log("info", "committed", "target", order->target->name, "run",
                    service_number((long long)report->run_id), "trigger", report->trigger);
}

/* Only the last minutes, until something happens. */
static int fly(const struct worker_order *order, struct choice *choice, struct error *err)
{
    struct flight_options options = {
        .store_path = order->config->store,
        .name = order->target->name,
        .window_ns = order->target->flight_ns,
        .window_bytes = (size_t)order->target->flight_bytes,
        .keep = {.bytes = order->config->store_bytes / 4 * 3},
        .told = say_commit,
        .context = (void *)order,
    };
    struct flight *flight = NULL;
    int r = service_target_triggers(order->target, &choice->triggers, &choice->trigger_count, err);

    options.triggers = choice->triggers;
    options.trigger_count = choice->trigger_count;
    if (!r)
        r = flight_new(&options, &flight, err);
    if (!r)
        r = record_into(flight_store(flight), flight, choice, order, err);
    flight_free(flight);
    return r;
}

int worker_run(const struct worker_order *order)
{
    struct tracestore *store = NULL;
    struct choice choice;
    struct error err = {0};
    int r;

    read_signals(order->daemon);
    choose(order->target, &choice);
    if (order->target->flight_ns) {
        r = fly(order, &choice, &err);
    } else {
        r = tracestore_open(order->config->store, TRACESTORE_CREATE, &store, &err);
        if (!r)
            r = record_into(store, NULL, &choice, order, &err);
        tracestore_free(store);
    }
    if (r)
        snprintf(order->page->error, sizeof(order->page->error), "%s", err.message);
    if (r && service_process_started(order->process->pid) != order->process->started)
        return WORKER_GONE;
    return r ? WORKER_FAILED : WORKER_ENDED;
}
