/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/recording/recorder_inline.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "collector/recording/recorder_records.h"

static uint16_t tick_of(const struct agent_record *record)
{
    return (uint16_t)(record->sp >> AGENT_TICK_SHIFT);
}

/* Each call with its own time. */
static int consume_timed_calls(struct recorder *recorder, uint32_t tid, const struct agent_record *records,
                               const uint64_t *stamps, size_t count)
{
    int r = 0;

    for (size_t i = 0; !r && i < count; i++)
        r = streams_inline_calls(recorder->streams, tid, &records[i], 1,
                                 inline_backend_moment(recorder->inlined, tick_of(&records[i]), stamps[i]));
    return r;
}

/* Tick by tick. */
static int consume_calls(struct recorder *recorder, uint32_t tid, const struct agent_record *records,
                         size_t count)
{
    size_t from = 0;
    int r = 0;

    while (!r && from < count) {
        size_t to = from + 1;

        while (to < count && tick_of(&records[to]) == tick_of(&records[from]))
            to++;
        r = streams_inline_calls(recorder->streams, tid, &records[from], to - from,
                                 inline_backend_time(recorder->inlined, tick_of(&records[from])));
        from = to;
    }
    return r;
}

static int on_calls(void *context, uint32_t tid, const struct agent_record *records, const uint64_t *stamps,
                    size_t count)
{
    struct recorder *recorder = context;

    recorder->inline_calls += count;
    if (recorder->budget)
        budget_inline_calls(recorder->budget, records, count);
    if (!tid) /* a child that is not followed */
        return 0;
    return stamps ? consume_timed_calls(recorder, tid, records, stamps, count)
                  : consume_calls(recorder, tid, records, count);
}

static int on_lost(void *context, uint32_t tid, uint64_t calls)
{
    struct recorder *recorder = context;

    if (recorder->budget)
        budget_inline_lost(recorder->budget, calls);
    return tid ? streams_inline_lost(recorder->streams, tid, calls) : 0;
}

static int on_distrusted(void *context, pid_t pid, const char *why)
{
    struct recorder *recorder = context;
    char what[192];

    snprintf(what, sizeof(what), "its inline probes are not believed: %s", why);
    return streams_process_loss(recorder->streams, pid, what);
}

const char *recorder_inline_refusal(const struct recorder_options *options)
{
    if (options->opens)
        return "--trigger: inline probes record every call";
    if (options->flight && flight_has_functions(options->flight, true))
        return "--flight-on slow: inline probes do not see when calls return";
    if (options->times == STREAM_TIMES_FULL && !inline_backend_has_clock())
        return "--time full: this machine's time stamp counter is not stable";
    if (options->returns == PLAN_RETURNS_PROBE || options->returns == PLAN_RETURNS_SITES)
        return "--returns probe or sites: inline probes see no returns";
    return NULL;
}

int recorder_inline_open(struct recorder *recorder, struct error *err)
{
    const struct inline_options inlined = {
        .ring_bytes = recorder->options.ring_bytes,
        .timed = recorder->options.times == STREAM_TIMES_FULL,
    };
    const struct inline_sink sink = {.calls = {.calls = on_calls, .lost = on_lost, .context = recorder},
                                     .distrusted = on_distrusted};
    int r;

    if (recorder->options.backend == RECORDER_UPROBE || recorder_inline_refusal(&recorder->options))
        return 0;
    r = inline_backend_new(&inlined, &sink, &recorder->inlined, err);
    if (r)
        return r;
    return uprobe_backend_attach_claims(recorder->backend, inline_backend_agent(recorder->inlined),
                                        AGENT_CLAIM, err);
}

/* ------------------------------------------------------------------------------------ reading */

static int lend(struct recorder *recorder, const struct wire_slots *record)
{
    const struct inline_slot_sharing shared = {
        .pid = streams_process_of(recorder->streams, record->parent_tid),
        .lender = record->parent_tid,
        .borrower = record->header.tid,
        .offset = agent_cursor_offset(record->cursor),
        .wanted = record->followed,
    };

    return inline_backend_share_slots(recorder->inlined, &shared);
}

static int join(struct recorder *recorder, const struct wire_fork *record)
{
    const struct inline_birth birth = {
        .parent = (pid_t)record->parent_tgid,
        .child = (pid_t)record->tgid,
        .ns = record->header.ns,
        .shares_memory = record->shares & FORK_SHARES_MEMORY,
    };
    bool joins = birth.child != birth.parent && !(record->shares & FORK_IS_LEFT);

    return joins ? inline_backend_fork(recorder->inlined, &birth) : 0;
}

/* The thread has ended, and with it (`last`) its process, or the program that this had: its stubs are gone,
 * and it may get others right now. */
static int leave(struct recorder *recorder, pid_t pid, uint32_t tid, bool last)
{
    int r = inline_backend_end_thread(recorder->inlined, pid, tid);

    if (last)
        inline_backend_end_process(recorder->inlined, pid);
    return r;
}

int recorder_inline_note(struct recorder *recorder, const void *record)
{
    const struct wire_header *header = record;
    const struct wire_exec *exec = record;
    const struct wire_exit *exit = record;
    const struct wire_claim *claim = record;
    const struct wire_inline *place = record;
    uint32_t tid = header->tid;

    switch ((enum wire_kind)header->kind) {
    case WIRE_FORK:
        return join(recorder, record);
    case WIRE_EXEC:
        return leave(recorder, (pid_t)tid, exec->old_tid, true);
    case WIRE_EXIT:
        return leave(recorder, (pid_t)exit->tgid, tid, header->flags & WIRE_LAST_THREAD);
    case WIRE_CLAIM:
        return inline_backend_claim(recorder->inlined, streams_process_of(recorder->streams, tid), tid,
                                    claim->ticket, claim->area);
    case WIRE_SLOTS_SHARED:
        return lend(recorder, record);
    case WIRE_SLOTS_BACK:
        return inline_backend_end_sharing(recorder->inlined, tid, agent_cursor_offset(place->cursor));
    case WIRE_INLINE:
        return inline_backend_read_to(recorder->inlined, streams_process_of(recorder->streams, tid), tid,
                                      agent_cursor_offset(place->cursor));
    default:
        return 0;
    }
}

/* The records of one CPU may come into the ring a little later than their time. */
#define DISORDER_NS 10000000u

/* Ends the round behind what had happened when it looked: a program that goes on making processes gives as
 * many new records as are read meanwhile, with the calls that come before them. So does one that goes on
 * loading libraries, before the recording begins: nobody waits for us then. */
static int on_record(void *context, const void *record, size_t size)
{
    struct recorder *recorder = context;
    const struct wire_header *header = record;
    int r = recorder_handle(context, record, size);

    if ((recorder->inline_calls > RECORDER_ROUND || !recorder->flushed_ns) &&
        header->ns > recorder->inline_sampled_ns + DISORDER_NS)
        recorder->inline_overtaken = true;
    return r ? r : recorder->inline_overtaken;
}

int recorder_inline_consume(struct recorder *recorder, unsigned limit)
{
    int r = inline_backend_sample(recorder->inlined), records;

    recorder->inline_calls = 0;
    recorder->inline_overtaken = false;
    recorder->inline_sampled_ns = clock_ns(CLOCK_MONOTONIC);
    if (r)
        return r;
    records = uprobe_backend_consume(recorder->backend, limit, on_record, recorder);
    if (records < 0)
        return records;
    if ((unsigned)records < limit || recorder->inline_overtaken) /* nothing is left that comes before */
        r = inline_backend_read(recorder->inlined);
    if (r)
        return r;
    return recorder->inline_calls > limit ? (int)limit : records + (int)recorder->inline_calls;
}

/* ------------------------------------------------------------------------------------ the end */

void recorder_inline_detach(struct recorder *recorder)
{
    struct error err = {0};

    if (recorder->inlined && inline_backend_detach(recorder->inlined, &err) && recorder->writer)
        recorder_tag(recorder, "inline probes left", err.message, NULL);
}

int recorder_inline_finish(struct recorder *recorder, struct error *err)
{
    uint64_t unplaced, shared;
    int r;

    if (!recorder->inlined)
        return 0;
    r = inline_backend_finish(recorder->inlined);
    if (r)
        return error_set(err, r, NULL, "cannot read the rings");
    unplaced = inline_backend_unplaced(recorder->inlined);
    shared = inline_backend_shared(recorder->inlined);
    if (unplaced)
        r = trace_writer_loss(recorder->writer, clock_ns(CLOCK_REALTIME), unplaced,
                              "ring full, thread unknown", err);
    if (!r && shared)
        r = trace_writer_loss(recorder->writer, clock_ns(CLOCK_REALTIME), shared,
                              "threads with one thread control block", err);
    return r;
}
