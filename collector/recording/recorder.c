/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/recording/recorder_state.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/progress.h"
#include "collector/launch/privileges.h"
#include "collector/recording/go_detail.h"
#include "collector/recording/recorder_backends.h"
#include "collector/recording/recorder_flight.h"
#include "collector/recording/recorder_probes.h"
#include "collector/recording/recorder_rewrites.h"
#include "collector/recording/recorder_rights.h"
#include "collector/uprobe/kernel_features.h"

/* Calls do not wake the collector: it looks this often. A ring of 32 MiB holds a million calls. */
#define POLL_MS 10
/* While inline probes record BUSY_CALLS in a round: a program on the same processor waits for a whole round. */
#define BUSY_POLL_MS 1
#define BUSY_CALLS 2000
#define HELD_POLL_US 30 /* while a thread of the target stands still for us */
#define HELD_AT_ONCE 64
#define GO_DETAIL_NS 20000000u
/* Closed segments in memory: commit before the interval is over; and the most that a locked store may pile
 * up. */
#define PENDING_BYTES (16u << 20)
#define PENDING_BYTES_MAX (512u << 20)

int recorder_tag(struct recorder *recorder, const char *key, const char *value, struct error *err)
{
    return trace_writer_tag(recorder->writer, key, value, err);
}

const char *recorder_why_ptrace(const struct recorder *recorder)
{
    return recorder->tracer ? recorder->why_ptrace.message : NULL;
}

int64_t recorder_run_id(const struct recorder *recorder)
{
    return trace_writer_run_id(recorder->writer);
}

struct stream_counts recorder_counts(const struct recorder *recorder)
{
    return streams_counts(recorder->streams);
}

const struct traced_image *recorder_images(const struct recorder *recorder)
{
    return image_table_images(recorder->images);
}

struct trace_writer_memory recorder_memory(const struct recorder *recorder)
{
    return trace_writer_memory(recorder->writer);
}

uint64_t recorder_ring_bytes(const struct recorder *recorder)
{
    return recorder->source->of->bytes(recorder->source);
}

uint64_t recorder_dropped_runs(const struct recorder *recorder)
{
    return recorder->quota.retained.runs;
}

void recorder_stop(struct recorder *recorder)
{
    const uint64_t one = 1;

    if (write(recorder->stop, &one, sizeof(one)) < 0)
        return; /* the counter is at its limit: it has been told */
}

bool recorder_budget_totals(const struct recorder *recorder, struct budget_totals *ret_totals)
{
    if (recorder->budget)
        budget_totals(recorder->budget, ret_totals);
    return recorder->budget;
}

int recorder_budget_functions(const struct recorder *recorder, struct budget_function_status **ret_functions,
                              size_t *ret_count, struct error *err)
{
    *ret_functions = NULL;
    *ret_count = 0;
    return recorder->budget ? budget_functions(recorder->budget, ret_functions, ret_count, err) : 0;
}

static int open_wakeups(struct recorder *recorder, struct error *err)
{
    struct epoll_event event = {.events = EPOLLIN};

    recorder->epoll = epoll_create1(EPOLL_CLOEXEC);
    recorder->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (recorder->epoll < 0 || recorder->stop < 0 ||
        epoll_ctl(recorder->epoll, EPOLL_CTL_ADD, recorder->source->of->fd(recorder->source), &event) ||
        epoll_ctl(recorder->epoll, EPOLL_CTL_ADD, recorder->stop, &event))
        return error_set(err, -errno, NULL, "cannot wait for events");
    if (recorder->watch && epoll_ctl(recorder->epoll, EPOLL_CTL_ADD, go_watch_fd(recorder->watch), &event))
        return error_set(err, -errno, NULL, "cannot wait for stops");
    return 0;
}

/* A quarter of the machine's memory, at most 1 GiB. */
static size_t default_memory(void)
{
    const uint64_t most = (uint64_t)1 << 30;
    uint64_t quarter = (uint64_t)sysconf(_SC_PHYS_PAGES) / 4 * (uint64_t)sysconf(_SC_PAGESIZE);

    return (size_t)(quarter < most ? quarter : most);
}

/* Synchronisation is recorded, and functions that the user has declared. */
static int begin_sync(struct recorder *recorder, struct error *err)
{
    const struct recorder_options *options = &recorder->options;
    int r = sync_probes_new(recorder->uprobes, recorder->streams, options->content.declarations,
                            options->content.declaration_count, &recorder->sync, err);

    for (size_t i = 0; !r && i < options->content.declaration_count; i++)
        r = trace_writer_sync_function(recorder->writer, i + 1,
                                       sync_event_kind_name(options->content.declarations[i].kind),
                                       options->content.declarations[i].name, err);
    return r;
}

static int consume(void *context, struct error *err)
{
    struct recorder *recorder = context;

    recorder->source->of->want_all(recorder->source);
    return recorder_consume(recorder, err);
}

static int begin_trigger(struct recorder *recorder, uint64_t from_ns, struct error *err)
{
    const struct trigger_options options = {
        .opens = recorder->options.trigger.opens,
        .context = recorder->options.trigger.context,
        .backend = recorder->in_files,
        .images = recorder->images,
        .writer = recorder->writer,
        .from_ns = from_ns,
    };

    return trigger_new(&options, &recorder->trigger, err);
}

bool recorder_has_trigger(const struct recorder *recorder)
{
    return recorder->trigger && trigger_is_there(recorder->trigger);
}

static int begin_budget(struct recorder *recorder, struct tracestore *store, struct error *err)
{
    const struct budget_options options = {
        .share = recorder->options.limits.budget,
        .images = recorder->images,
        .backend = recorder->in_files,
        .inlined = recorder->in_processes,
        .timed = recorder->options.content.times == STREAM_TIMES_FULL,
        .streams = recorder->streams,
        .writer = recorder->writer,
        .store = store,
        .stop = recorder->stop,
        .consume = consume,
        .context = recorder,
    };

    return budget_new(&options, &recorder->budget, err);
}

static int begin_loader(struct recorder *recorder, struct error *err)
{
    const struct loader_options options = {
        .images = recorder->images,
        .source = recorder->source,
        .in_files = recorder->in_files,
        .in_processes = recorder->in_processes,
        .uprobes = recorder->uprobes,
        .streams = recorder->streams,
        .sync = recorder->sync,
        .trigger = recorder->trigger,
        .budget = recorder->budget,
        .libraries = recorder->options.selected.want_image != NULL,
        .skip_environment = recorder->options.content.skip_environment,
        .keep_arguments = recorder->options.content.keep_arguments,
    };

    return loader_new(&options, &recorder->loader, err);
}

static int begin_run(struct recorder *recorder, struct tracestore *store, struct error *err)
{
    const struct recorder_options *options = &recorder->options;
    const struct trace_run_description run = {
        .name = options->run.name,
        .command = options->run.command,
        .options = options->run.options,
        .started_ns = clock_ns(CLOCK_REALTIME),
    };
    struct stream_options stream = {
        .times = options->content.times,
        .call_sites = options->content.call_sites,
        .source = recorder->source,
        .sync = options->content.sync,
        .goroutines = recorder->watch ? go_watch_observer(recorder->watch) : options->go.observer,
    };
    struct trace_writer_options writer = {
        .memory_bytes = options->limits.memory_bytes ? options->limits.memory_bytes : default_memory()};
    int r = 0;

    if (options->storage.flight) {
        writer.window_ns = flight_options_of(options->storage.flight)->window_ns;
        writer.window_bytes = flight_options_of(options->storage.flight)->window_bytes;
        r = recorder_flight_open(recorder, &stream, err);
    }
    if (!r)
        r = trace_writer_begin(store, &run, &writer, &recorder->writer, err);

    if (!r)
        store_quota_init(&recorder->quota, store, trace_writer_run_id(recorder->writer),
                         &options->storage.room);
    if (!r)
        r = streams_new(&stream, recorder->images, recorder->writer, &recorder->streams, err);
    if (!r && options->content.sync)
        r = begin_sync(recorder, err);
    if (!r && options->content.times == STREAM_TIMES_FULL)
        r = recorder_tag(recorder, "times", "full", err);
    if (!r && options->trigger.opens)
        r = begin_trigger(recorder, run.started_ns, err);
    if (!r && options->limits.budget > 0)
        r = begin_budget(recorder, store, err);
    return r ? r : begin_loader(recorder, err);
}

int recorder_open(struct tracestore *store, const struct recorder_options *options,
                  struct recorder **ret_recorder, struct error *err)
{
    struct image_table_options image;
    struct recorder *recorder = calloc(1, sizeof(*recorder));
    int r;

    if (!recorder)
        return error_no_memory(err);
    recorder->options = *options;
    recorder->epoll = recorder->stop = -1;
    recorder_commands_init(&recorder->commands);
    if (!recorder->options.storage.flush_interval_ns)
        recorder->options.storage.flush_interval_ns = 1000000000u;
    if (options->storage.flight && recorder->options.storage.flush_interval_ns >
                                       flight_options_of(options->storage.flight)->window_ns / 8)
        recorder->options.storage.flush_interval_ns =
            flight_options_of(options->storage.flight)->window_ns / 8;
    launch_want_ends();
    r = recorder_backends_open(recorder, err);
    if (!r && options->go.watch)
        r = go_watch_new(options->go.watch, &options->go.watcher, &recorder->watch, err);
    if (!r)
        r = open_wakeups(recorder, err);
    image = recorder_image_options(&recorder->options);
    if (!r)
        r = image_table_new(&image, &recorder->images, err);
    if (!r)
        r = begin_run(recorder, store, err);
    if (r) {
        recorder_free(recorder);
        return r;
    }
    *ret_recorder = recorder;
    return 0;
}

void recorder_release_forgotten(struct recorder *recorder)
{
    uint64_t losses = recorder->source->of->losses(recorder->source).life_cycle;
    pid_t pids[HELD_AT_ONCE];
    size_t count;

    if (losses == recorder->life_cycle_losses && !recorder->closing)
        return;
    recorder->life_cycle_losses = losses;
    do { /* a released process leaves the list */
        count = recorder->source->of->held(recorder->source, pids, HELD_AT_ONCE);
        for (size_t i = 0; i < count; i++)
            recorder->source->of->release(recorder->source, pids[i]);
    } while (count == HELD_AT_ONCE);
}

static int flush(void *context, struct error *err)
{
    struct recorder *recorder = context;
    int r = recorder->trigger ? trigger_sample(recorder->trigger, err) : 0;

    return r ? r : trace_writer_flush(recorder->writer, clock_ns(CLOCK_REALTIME), err);
}

/* Commits if it is time, or if much has gathered. Another process may keep the store locked for long: nothing
 * is lost by that but time, so the next round tries again. */
static int flush_if_due(struct recorder *recorder, uint64_t now, struct error *err)
{
    int r;

    if (now - recorder->flushed_ns < recorder->options.storage.flush_interval_ns &&
        trace_writer_pending_bytes(recorder->writer) < PENDING_BYTES)
        return store_quota_step(&recorder->quota, false, err);
    r = flush(recorder, err);
    if (r == -ENOSPC)
        r = store_quota_commit(&recorder->quota, flush, recorder, err);
    if (r == -EBUSY && trace_writer_pending_bytes(recorder->writer) < PENDING_BYTES_MAX)
        return 0;
    recorder->flushed_ns = now;
    return r ? r : store_quota_step(&recorder->quota, true, err);
}

static int apply_go_detail_if_due(struct recorder *recorder, uint64_t now, struct error *err)
{
    int r = recorder->budget ? budget_sample(recorder->budget, now, err) : 0;

    if (r || !(recorder->options.go.budget.share > 0) || now - recorder->go_detail_ns < GO_DETAIL_NS)
        return r;
    recorder->go_detail_ns = now;
    return go_detail_apply(recorder->streams, recorder->uprobes, now, err);
}

/* Whether the targets have ended: 1 yes, 0 no, <0 the command could not be run. */
static int targets_ended(struct recorder *recorder, struct error *err)
{
    return recorder->commands.started ? recorder_commands_ended(recorder, err)
                                      : !streams_live_processes(recorder->streams);
}

static bool stop_wanted(const struct recorder *recorder)
{
    uint64_t told;

    return read(recorder->stop, &told, sizeof(told)) > 0;
}

static int poll_ms(const struct recorder *recorder)
{
    const struct backend *inlined = recorder->in_processes;
    bool awaited = inlined && inlined->of->awaited(inlined);

    return awaited || recorder->round.calls > BUSY_CALLS ? BUSY_POLL_MS : POLL_MS;
}

static unsigned privileges_to_keep(void)
{
    unsigned for_events = kernel_probe_way() == PROBE_WAY_EVENTS ? PRIVILEGE_ADMIN : 0;

    return PRIVILEGES_TO_RECORD | PRIVILEGES_TO_FOLLOW | for_events;
}

int recorder_run(struct recorder *recorder, uint64_t duration_ns, struct error *err)
{
    uint64_t begun = clock_ns(CLOCK_MONOTONIC), now;
    struct epoll_event event;
    bool held = false;
    int r, records = 0;

    /* Stacks are looked at in the end. What a watched program's next execution inherits must not be less. */
    r = recorder->watch ? 0 : privileges_drop(privileges_to_keep(), err);
    if (r)
        return r;
    if (!recorder->flushed_ns)
        recorder->flushed_ns = begun;
    recorder->source->of->enter(recorder->source, PHASE_RECORDING);
    for (;;) {
        if (held && !records)
            usleep(HELD_POLL_US);
        else if (records < (int)RECORDER_ROUND)
            epoll_wait(recorder->epoll, &event, 1, held ? 0 : poll_ms(recorder));
        records = recorder_consume(recorder, err);
        if (records < 0)
            return records;
        held = recorder->watch && go_watch_round(recorder->watch, !records);
        recorder_release_forgotten(recorder);
        r = recorder_serve_rewrites(recorder, err);
        now = clock_ns(CLOCK_MONOTONIC);
        progress("recording", duration_ns ? (double)(now - begun) / (double)duration_ns : PROGRESS_UNKNOWN);
        recorder_release_images(recorder, now);
        recorder_commands_signal(recorder, now);
        if (!r)
            r = apply_go_detail_if_due(recorder, now, err);
        if (!r)
            r = recorder_check_probes(recorder, now, err);
        if (!r)
            r = recorder_check_rights(recorder, now, err);
        if (!r)
            r = flush_if_due(recorder, now, err);
        if (!r && recorder->options.storage.flight)
            r = recorder_flight_round(recorder, now, flush, err);
        if (r)
            return r;
        r = targets_ended(recorder, err);
        if (r)
            return r < 0 ? r : 0;
        if (stop_wanted(recorder) || (duration_ns && now - begun >= duration_ns))
            return 0;
    }
}

void recorder_free(struct recorder *recorder)
{
    if (!recorder)
        return;
    if (recorder->backend_count)
        recorder_detach(recorder);
    go_watch_free(recorder->watch);
    recorder_commands_release(&recorder->commands);
    loader_free(recorder->loader);
    budget_free(recorder->budget);
    trigger_free(recorder->trigger);
    sync_probes_free(recorder->sync);
    streams_free(recorder->streams);
    recorder_flight_release(recorder);
    free(recorder->rewrites);
    recorder_failures_release(recorder);
    recorder_probes_release(&recorder->probes);
    trace_writer_free(recorder->writer);
    image_table_free(recorder->images);
    recorder_backends_release(recorder);
    if (recorder->epoll >= 0)
        close(recorder->epoll);
    if (recorder->stop >= 0)
        close(recorder->stop);
    free(recorder);
}
