/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/recording/recorder_backends.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "collector/arch/processor.h"
#include "collector/arch/record.h"
#include "collector/backend/no_file_probes.h"
#include "collector/inline/inline.h"
#include "collector/launch/background.h"
#include "collector/process/pid_namespace.h"
#include "collector/recording/recorder_records.h"

/* ------------------------------------------------------------------------------------ what they hand on */

static int on_calls(void *context, uint32_t tid, const struct agent_record *records, size_t count,
                    uint64_t ns)
{
    struct recorder *recorder = context;

    recorder->round.calls += count;
    if (recorder->budget)
        budget_inline_calls(recorder->budget, records, count);
    return tid ? streams_inline_calls(recorder->streams, tid, records, count, ns) : 0;
}

static int on_lost(void *context, uint32_t tid, uint64_t calls)
{
    struct recorder *recorder = context;

    if (recorder->budget)
        budget_inline_lost(recorder->budget, calls);
    return tid ? streams_inline_lost(recorder->streams, tid, calls) : 0;
}

static int on_waited(void *context, uint32_t tid, uint64_t ns)
{
    struct recorder *recorder = context;

    (void)tid;
    recorder->waited_ns += ns;
    return 0;
}

static int on_distrusted(void *context, pid_t pid, const char *why)
{
    struct recorder *recorder = context;
    char what[192];

    snprintf(what, sizeof(what), "its inline probes are not believed: %s", why);
    return streams_process_loss(recorder->streams, pid, what);
}

static pid_t process_of(void *context, uint32_t tid)
{
    const struct recorder *recorder = context;

    return streams_process_of(recorder->streams, tid);
}

static int number_area(void *context, uint32_t *ret_area)
{
    struct recorder *recorder = context;

    return recorder->source->of->number_area(recorder->source, ret_area);
}

static int set_area(void *context, pid_t pid, uint32_t area)
{
    struct recorder *recorder = context;

    return recorder->source->of->set_area(recorder->source, pid, area);
}

/* ------------------------------------------------------------------------------------ opening */

const char *recorder_inline_refusal(const struct recorder_options *options)
{
    if (!options->probes.insists_on_inline && processor_is_emulated())
        return "this processor is emulated (QEMU without KVM), where inline probes lose calls";
    if (options->content.sync)
        return "--sync: inline probes know the time of a call only to a tick of 10 ms";
    if (options->content.call_sites)
        return "--call-sites: inline probes do not see the whole return address";
    if (options->trigger.opens)
        return "--trigger: inline probes record every call";
    if (options->storage.flight && flight_has_functions(options->storage.flight, true))
        return "--flight-on slow: inline probes do not see when calls return";
    if (options->content.times == STREAM_TIMES_FULL && !inline_has_clock())
        return "--time full: this machine's time stamp counter is not stable";
    if (options->content.returns == PLAN_RETURNS_PROBE || options->content.returns == PLAN_RETURNS_SITES)
        return "--returns probe or sites: inline probes see no returns";
    return NULL;
}

const char *recorder_ptrace_refusal(const struct recorder_options *options)
{
    if (options->probes.needs_bpf)
        return options->probes.needs_bpf;
    if (options->content.sync)
        return "--sync needs the kernel's probes";
    if (options->go.detail != GO_DETAIL_NONE || options->go.watch || options->go.delays)
        return "goroutines are seen by the kernel's probes alone";
    if (options->limits.count_only)
        return "calls are counted by the kernel's probes alone";
    return recorder_inline_refusal(options);
}

bool recorder_has_inline(const struct recorder_options *options)
{
    return options->probes.backend == RECORDER_INLINE && !recorder_inline_refusal(options);
}

static int open_inline(struct recorder *recorder, struct error *err)
{
    const struct inline_options options = {
        .ring_bytes = recorder->options.limits.ring_bytes,
        .timed = recorder->options.content.times == STREAM_TIMES_FULL,
        .waits = recorder->options.probes.waits,
        .first_only = !recorder->options.targets.follow_children,
        .filtered = recorder->source->of->filtered(recorder->source),
        .number_area = number_area,
        .set_area = set_area,
        .by_notes = recorder->tracer,
    };
    const struct backend_sink sink = {.calls = on_calls,
                                      .lost = on_lost,
                                      .waited = on_waited,
                                      .distrusted = on_distrusted,
                                      .process_of = process_of,
                                      .context = recorder};
    int r = inline_backend_new(&options, &sink, &recorder->in_processes, err), agent;

    if (r)
        return r;
    recorder->backends[recorder->backend_count++] = recorder->in_processes;
    agent = inline_agent(recorder->in_processes);
    r = recorder->source->of->watch_claims(recorder->source, agent, AGENT_CLAIM, err);
    return r || !options.waits ? r
                               : recorder->source->of->watch_asks(recorder->source, agent, AGENT_ASK, err);
}

static int open_bpf(struct recorder *recorder, struct error *err)
{
    const struct uprobe_options uprobe = recorder_uprobe_options(&recorder->options);
    struct background *background;
    int r = pid_namespace_check(err);

    if (r)
        return r;
    background = background_begin(recorder->options.limits.budget);
    r = uprobe_backend_open(&uprobe, &recorder->uprobes, err);
    background_end(background);
    if (r)
        return r;
    recorder->options.probes.life_cycle = RECORDER_BY_BPF;
    recorder->source = uprobe_life_cycle(recorder->uprobes);
    recorder->in_files = uprobe_calls(recorder->uprobes);
    return 0;
}

/* Inline probes are all that there can be then, and nothing that bounds what they cost. */
static int open_tracer(struct recorder *recorder, struct error *err)
{
    struct recorder_options *options = &recorder->options;
    int r = tracer_new(options->targets.follow_children, &recorder->tracer, err);

    if (r)
        return r;
    options->probes.life_cycle = RECORDER_BY_PTRACE;
    options->probes.backend = RECORDER_INLINE;
    options->probes.waits = false;
    options->limits.budget = 0;
    options->go.budget.share = 0;
    recorder->source = tracer_life_cycle(recorder->tracer);
    recorder->in_files = no_file_probes();
    return 0;
}

static int open_source(struct recorder *recorder, struct error *err)
{
    const struct recorder_options *options = &recorder->options;
    const char *refusal = recorder_ptrace_refusal(options);
    int r = 0;

    if (options->probes.life_cycle == RECORDER_BY_PTRACE && refusal)
        return error_say(err, -ENOTSUP, "cannot record by ptrace: %s", refusal);
    if (options->probes.life_cycle != RECORDER_BY_PTRACE) {
        r = open_bpf(recorder, &recorder->why_ptrace);
        if (!r)
            return 0;
    }
    if (options->probes.life_cycle != RECORDER_BY_BPF && !refusal && pid_namespace_is_whole())
        return open_tracer(recorder, err);
    if (!r)
        return error_say(
            err, -ENOTSUP,
            "cannot record by ptrace: /proc, or the children of this process, are of another pid "
            "namespace");
    if (err)
        *err = recorder->why_ptrace;
    return r;
}

int recorder_backends_open(struct recorder *recorder, struct error *err)
{
    const struct recorder_options *options = &recorder->options;
    int r = open_source(recorder, err);

    if (!r)
        r = recorder->source->of->guard(recorder->source, err);
    if (!r && recorder_has_inline(options))
        r = open_inline(recorder, err);
    /* The last one whose probes are taken away: the records of the others' processes come up to then. */
    if (recorder->in_files)
        recorder->backends[recorder->backend_count++] = recorder->in_files;
    return r;
}

void recorder_backends_release(struct recorder *recorder)
{
    if (recorder->in_processes)
        recorder->in_processes->of->free(recorder->in_processes);
    uprobe_backend_free(recorder->uprobes);
    tracer_free(recorder->tracer);
}

/* ------------------------------------------------------------------------------------ a round of reading */

/* Calls one operation of each backend that has it; `r` is the first failure. */
#define EACH_BACKEND(recorder, r, operation, ...) \
    for (size_t b = 0; !(r) && b < (recorder)->backend_count; b++) \
        if ((recorder)->backends[b]->of->operation) \
    (r) = (recorder)->backends[b]->of->operation((recorder)->backends[b], ##__VA_ARGS__)

int recorder_backends_note(struct recorder *recorder, const void *record)
{
    int r = 0;

    EACH_BACKEND(recorder, r, note, record);
    return r;
}

/* The records of one CPU may come into the ring a little later than their time. */
#define DISORDER_NS 10000000u

/* Ends the round behind what had happened when it looked: a program that continues making processes gives as
 * many new records as are read meanwhile, with the calls that come before them. So does one that continues
 * loading libraries, before the recording begins: no process waits for us then. */
static int on_record(void *context, const void *record, size_t size)
{
    struct recorder *recorder = context;
    struct recorder_round *round = &recorder->round;
    const struct wire_header *header = record;
    int r = recorder_handle(recorder, record, size);

    if (recorder->in_processes && (round->calls > RECORDER_ROUND || !recorder->flushed_ns) &&
        header->ns > round->sampled_ns + DISORDER_NS)
        round->overtaken = true;
    return r ? r : round->overtaken;
}

/* Returns how many records there were, calls that backends have read themselves among them. */
static int read_round(struct recorder *recorder)
{
    struct recorder_round *round = &recorder->round;
    int r = 0, records;

    EACH_BACKEND(recorder, r, sample);
    *round = (struct recorder_round){.sampled_ns = clock_ns(CLOCK_MONOTONIC)};
    if (r)
        return r;
    records = recorder->source->of->consume(recorder->source, RECORDER_ROUND, on_record, recorder);
    if (records < 0)
        return records;
    if ((unsigned)records < RECORDER_ROUND || round->overtaken) /* nothing is left that comes before */
        EACH_BACKEND(recorder, r, read);
    if (r)
        return r;
    return round->calls > RECORDER_ROUND ? (int)RECORDER_ROUND : records + (int)round->calls;
}

int recorder_consume(struct recorder *recorder, struct error *err)
{
    const struct error *why = &recorder->failure;
    int r = read_round(recorder);

    if (r >= 0)
        return r;
    if (!why->code)
        why = streams_error(recorder->streams);
    if (why->code && err)
        *err = *why;
    else
        error_set(err, r, NULL, "cannot read the ring buffer");
    return r;
}

/* ------------------------------------------------------------------------------------ the end */

int recorder_backends_freeze(struct recorder *recorder)
{
    int r = 0;

    EACH_BACKEND(recorder, r, freeze);
    return r;
}

void recorder_backends_detach(struct recorder *recorder)
{
    for (size_t b = 0; b < recorder->backend_count; b++) {
        struct backend *backend = recorder->backends[b];
        struct error why = {0};

        if (backend->of->detach(backend, &why) && recorder->writer)
            recorder_tag(recorder, "inline probes left", why.message, NULL);
    }
}

static int store_loss(void *context, uint64_t calls, const char *cause)
{
    struct recorder *recorder = context;

    return trace_writer_loss(recorder->writer, clock_ns(CLOCK_REALTIME), calls, cause, &recorder->failure);
}

int recorder_backends_finish(struct recorder *recorder, struct error *err)
{
    int r = 0;

    EACH_BACKEND(recorder, r, finish);
    if (r)
        return error_set(err, r, NULL, "cannot read the rings");
    EACH_BACKEND(recorder, r, losses, store_loss, recorder);
    if (r && err)
        *err = recorder->failure;
    return r;
}
