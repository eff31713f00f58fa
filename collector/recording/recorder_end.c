/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The end of a recording: a look at the stacks of threads that live on, the probes taken away, the ring read
 * empty, what was not seen written down, the run ended; and what is left of that when the disk is full.
 */
#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/progress.h"
#include "collector/recording/recorder_backends.h"
#include "collector/recording/recorder_probes.h"
#include "collector/recording/recorder_sweep.h"
#include "collector/stacks/live_stack.h"

/* What was not seen at all, and why. */
static int store_blind_spots(struct recorder *recorder, struct error *err)
{
    struct life_cycle_losses lost = recorder->source->of->losses(recorder->source);
    uint64_t now = clock_ns(CLOCK_REALTIME);
    uint64_t strays = streams_counts(recorder->streams).strays;
    int r = 0;

    if (lost.unplaced + strays)
        r = trace_writer_loss(recorder->writer, now, lost.unplaced + strays, "ring full, thread unknown",
                              err);
    if (!r && lost.life_cycle)
        r = trace_writer_loss(recorder->writer, now, 0, "life-cycle records lost", err);
    if (!r && lost.processes)
        r = trace_writer_loss(recorder->writer, now, 0, "too many processes at once", err);
    if (!r && recorder->trigger)
        r = trigger_finish(recorder->trigger, now, err);
    if (!r && recorder->budget)
        r = budget_finish(recorder->budget, err);
    return r ? r : image_table_store_blind(recorder->images, recorder->writer, err);
}

/* Why the run takes more bytes than it would have. */
static int tag_closed_early(struct recorder *recorder, struct error *err)
{
    struct trace_writer_memory memory = trace_writer_memory(recorder->writer);
    char count[24];

    if (!memory.closed_early || recorder->memory_reported)
        return 0;
    snprintf(count, sizeof(count), "%llu", (unsigned long long)memory.closed_early);
    recorder->memory_reported = true;
    return trace_writer_tag(recorder->writer, "segments closed early", count, err);
}

/* What the calls took on their way to the collector. */
static int tag_ring_bytes(struct recorder *recorder, struct error *err)
{
    char count[24];

    snprintf(count, sizeof(count), "%llu", (unsigned long long)recorder_ring_bytes(recorder));
    return recorder_tag(recorder, "ring bytes", count, err);
}

/* What --when-behind wait has cost. */
static int tag_waited(struct recorder *recorder, struct error *err)
{
    char ns[24];

    if (!recorder->waited_ns)
        return 0;
    snprintf(ns, sizeof(ns), "%llu", (unsigned long long)recorder->waited_ns);
    return recorder_tag(recorder, "waited ns", ns, err);
}

static int end_run(void *context, struct error *err)
{
    struct recorder *recorder = context;
    int r = tag_closed_early(recorder, err);

    return r ? r
             : trace_writer_end(recorder->writer, clock_ns(CLOCK_REALTIME), recorder->commands.exit_status,
                                err);
}

static int drain(struct recorder *recorder, struct error *err)
{
    int r;

    recorder->source->of->want_all(recorder->source);
    do
        r = recorder_consume(recorder, err);
    while (r > 0);
    return r;
}

/* The stacks of threads that live on with calls of which it is unknown whether they are open. From here on
 * nothing is recorded: what the stacks say and what was recorded is of the same moment. Without stacks (NULL)
 * what is not known stays unknown. */
static int stop_and_look(struct recorder *recorder, struct live_stacks **ret_stacks, struct error *err)
{
    AUTO_FREE pid_t *pids = NULL;
    size_t count;

    if (streams_uncertain_processes(recorder->streams, &pids, &count))
        return error_no_memory(err);
    if (count && live_stacks_read(pids, count, ret_stacks, NULL))
        *ret_stacks = NULL;
    recorder->source->of->enter(recorder->source, PHASE_CLOSED);
    if (recorder_backends_freeze(recorder)) {
        live_stacks_free(*ret_stacks);
        *ret_stacks = NULL;
        return error_no_memory(err);
    }
    if (*ret_stacks && live_stacks_confirm(*ret_stacks, NULL)) {
        live_stacks_free(*ret_stacks);
        *ret_stacks = NULL;
    }
    return 0;
}

/* The removal of many probes takes the kernel seconds: no thread stands still for it. */
static void let_go_and_detach(struct recorder *recorder)
{
    recorder->closing = true;
    recorder->source->of->enter(recorder->source, PHASE_CLOSED);
    recorder_release_forgotten(recorder);
    recorder_backends_detach(recorder);
    recorder_sweep_probes(recorder);
}

int recorder_close(struct recorder *recorder, struct error *err)
{
    struct live_stacks *stacks = NULL;
    int r;

    progress("removing the probes", PROGRESS_UNKNOWN);
    recorder->source->of->want_all(recorder->source);
    r = recorder_consume(recorder, err);
    if (r >= 0)
        r = recorder_check_all_probes(recorder, err);
    if (!r)
        r = stop_and_look(recorder, &stacks, err);
    let_go_and_detach(recorder);
    progress("writing what was recorded", PROGRESS_UNKNOWN);
    if (!r)
        r = drain(recorder, err);
    if (!r)
        r = recorder_backends_finish(recorder, err);
    recorder_release_forgotten(recorder);
    if (!r)
        r = recorder_commands_survivors(recorder, err);
    if (!r)
        r = streams_resolve(recorder->streams, stacks, err);
    live_stacks_free(stacks);
    if (!r)
        r = store_blind_spots(recorder, err);
    if (!r)
        r = tag_ring_bytes(recorder, err);
    if (!r)
        r = tag_waited(recorder, err);
    if (!r)
        r = end_run(recorder, err);
    if (r == -ENOSPC)
        r = store_quota_commit(&recorder->quota, end_run, recorder, err);
    return r ? r : store_quota_finish(&recorder->quota, err);
}

int recorder_close_full(struct recorder *recorder, struct error *err)
{
    static const char cause[] = "disk full";
    uint64_t now = clock_ns(CLOCK_REALTIME);
    int r = trace_writer_loss(recorder->writer, now, 0, cause, err);

    tracestore_use_reserve(recorder->quota.store);
    if (!r)
        r = end_run(recorder, err);
    return r == -ENOSPC ? trace_writer_cut(recorder->writer, now, cause, err) : r;
}

void recorder_detach(struct recorder *recorder)
{
    let_go_and_detach(recorder);
    recorder_release_forgotten(recorder);
}

int recorder_abandon(struct recorder *recorder, struct error *err)
{
    return trace_writer_abandon(recorder->writer, err);
}
