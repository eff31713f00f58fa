/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/flight/flight.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "collector/flight/flight_committer.h"
#include "store/writer/window.h"

struct flight {
    struct flight_options options;
    char *window_path;
    struct tracestore *window;
    struct flight_committer committer;
    struct commit_order order; /* the next one: .trigger "" when nothing has fired */
    uint64_t others;           /* fired while that was pending */
    bool at_once;              /* a command waits for it */
    bool is_busy;              /* the committer is */
    bool leaves_window;        /* what was to be committed at the end could not be */
    uint64_t committed_ns;     /* when it was told to begin last, CLOCK_MONOTONIC; 0: never */
    struct flight_counts counts;
};

/* ------------------------------------------------------------------------------------ beginning, end */

int flight_new(const struct flight_options *options, struct flight **ret_flight, struct error *err)
{
    struct flight *flight = calloc(1, sizeof(*flight));
    int r;

    if (!flight)
        return error_no_memory(err);
    flight->options = *options;
    flight->committer.socket = -1;
    if (!flight->options.window_bytes)
        flight->options.window_bytes = FLIGHT_BYTES;
    r = flight_committer_start(&flight->options, &flight->committer, err);
    if (!r)
        r = window_create(options->store_path, &flight->window_path, &flight->window, err);
    if (!r)
        r = flight_committer_open(&flight->committer, flight->window_path, err);
    if (r) {
        flight_free(flight);
        return r;
    }
    *ret_flight = flight;
    return 0;
}

void flight_free(struct flight *flight)
{
    if (!flight)
        return;
    flight_committer_stop(&flight->committer);
    tracestore_free(flight->window);
    if (flight->window_path && !flight->leaves_window)
        window_delete(flight->window_path);
    free(flight->window_path);
    free(flight);
}

struct tracestore *flight_store(const struct flight *flight)
{
    return flight->window;
}

const struct flight_options *flight_options_of(const struct flight *flight)
{
    return &flight->options;
}

struct flight_counts flight_counts(const struct flight *flight)
{
    return flight->counts;
}

/* ------------------------------------------------------------------------------------ triggers */

bool flight_watches(const struct flight *flight, const struct image_function *function, uint64_t *ret_slow_ns,
                    bool *ret_calls)
{
    *ret_slow_ns = 0;
    *ret_calls = false;
    for (size_t i = 0; i < flight->options.trigger_count; i++) {
        const struct flight_trigger *trigger = &flight->options.triggers[i];
        bool is_slow = trigger->event == FLIGHT_SLOW;

        if (!flight_trigger_wants(trigger, function))
            continue;
        if (!is_slow)
            *ret_calls = true;
        else if (!*ret_slow_ns || trigger->slow_ns < *ret_slow_ns)
            *ret_slow_ns = trigger->slow_ns;
    }
    return *ret_slow_ns || *ret_calls;
}

bool flight_times(void *context, const struct image_function *function)
{
    uint64_t slow_ns;
    bool calls;

    return flight_watches(context, function, &slow_ns, &calls) && slow_ns;
}

static const struct flight_trigger *find(const struct flight *flight, enum flight_event event)
{
    for (size_t i = 0; i < flight->options.trigger_count; i++)
        if (flight->options.triggers[i].event == event)
            return &flight->options.triggers[i];
    return NULL;
}

bool flight_has_functions(const struct flight *flight, bool slow)
{
    return find(flight, FLIGHT_SLOW) || (!slow && find(flight, FLIGHT_CALL));
}

void flight_fire(struct flight *flight, const char *why)
{
    struct commit_order *order = &flight->order;

    flight->counts.fired++;
    if (*order->trigger) {
        flight->others++;
        return;
    }
    snprintf(order->trigger, sizeof(order->trigger), "%s", why);
}

void flight_ask(struct flight *flight, const char *why)
{
    flight_fire(flight, why);
    flight->at_once = true;
}

/* Signals that end a process in order, and those that are sent for that. */
static bool is_crash(int wait_status)
{
    int signal = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0;

    return signal && signal != SIGTERM && signal != SIGINT && signal != SIGHUP;
}

static bool wants_status(const struct flight *flight, int status)
{
    for (size_t i = 0; i < flight->options.trigger_count; i++) {
        const struct flight_trigger *trigger = &flight->options.triggers[i];

        if (trigger->event == FLIGHT_EXIT && (trigger->status == FLIGHT_ANY || trigger->status == status ||
                                              (trigger->status == FLIGHT_NONZERO && status)))
            return true;
    }
    return false;
}

void flight_process_ended(struct flight *flight, int pid, int wait_status, bool is_named)
{
    int status = WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
    char why[128];

    if (find(flight, FLIGHT_CRASH) && is_crash(wait_status)) {
        snprintf(why, sizeof(why), "crash: process %d died by SIG%s", pid,
                 sigabbrev_np(WTERMSIG(wait_status)));
        flight_fire(flight, why);
    } else if (is_named && wants_status(flight, status)) {
        snprintf(why, sizeof(why), "exit: process %d ended with status %d", pid, status);
        flight_fire(flight, why);
    }
}

/* ------------------------------------------------------------------------------------ commits */

bool flight_is_due(struct flight *flight, uint64_t now_ns)
{
    if (!*flight->order.trigger || flight->is_busy)
        return false;
    return flight->at_once || !flight->committed_ns ||
           now_ns - flight->committed_ns >= flight->options.window_ns;
}

/* The second run of a name is NAME.2. */
static void name_order(const struct flight *flight, struct commit_order *order)
{
    const char *name = flight->options.name;

    if (name && flight->counts.commits)
        snprintf(order->name, sizeof(order->name), "%.100s.%u", name, flight->counts.commits + 1);
    else
        snprintf(order->name, sizeof(order->name), "%s", name ? name : "");
}

int flight_commit(struct flight *flight, uint64_t now_ns, struct error *err)
{
    struct commit_order order = flight->order;
    size_t length = strlen(order.trigger);

    if (flight->others)
        snprintf(order.trigger + length, sizeof(order.trigger) - length, "; %llu more since",
                 (unsigned long long)flight->others);
    name_order(flight, &order);
    flight->order = (struct commit_order){0};
    flight->others = 0;
    flight->at_once = false;
    flight->is_busy = true;
    flight->committed_ns = now_ns;
    return flight_committer_order(&flight->committer, &order, err);
}

static void take_report(struct flight *flight, const struct flight_report *report)
{
    flight->is_busy = false;
    if (*report->error || !report->run_id)
        flight->counts.failures++;
    else
        flight->counts.commits++;
    if (report->run_id)
        flight->counts.last_run = report->run_id;
    else if (*report->error) /* the store was locked, or full: once more, a window later */
        flight_fire(flight, report->trigger);
    if (flight->options.told)
        flight->options.told(flight->options.context, report);
}

static int hear(struct flight *flight, bool wait, struct error *err)
{
    struct flight_report report;
    int r = flight->is_busy ? flight_committer_hear(&flight->committer, wait, &report, err) : 1;

    if (!r)
        take_report(flight, &report);
    return r < 0 ? r : 0;
}

int flight_listen(struct flight *flight, struct error *err)
{
    return hear(flight, false, err);
}

static int finish(struct flight *flight, bool failed, struct error *err)
{
    int r = hear(flight, true, err);

    if (!r && failed)
        flight_fire(flight, "the recording has failed");
    else if (!r && !*flight->order.trigger && find(flight, FLIGHT_END))
        flight_fire(flight, "end: the recording has ended");
    if (r || !*flight->order.trigger)
        return r;
    r = flight_commit(flight, flight->committed_ns, err);
    return r ? r : hear(flight, true, err);
}

int flight_finish(struct flight *flight, bool failed, struct error *err)
{
    int r = finish(flight, failed, err);

    flight->leaves_window = r || *flight->order.trigger;
    return r;
}
