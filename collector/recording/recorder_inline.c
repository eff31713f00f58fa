/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/recording/recorder_inline.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

static uint16_t tick_of(const struct agent_record *record)
{
    return (uint16_t)(record->sp >> AGENT_TICK_SHIFT);
}

/* Each call with its own time. */
static int take_timed_calls(struct recorder *recorder, uint32_t tid, const struct agent_record *records,
                            const uint64_t *stamps, size_t count)
{
    int r = 0;

    for (size_t i = 0; !r && i < count; i++)
        r = streams_inline_calls(recorder->streams, tid, &records[i], 1,
                                 inline_backend_moment(recorder->inlined, tick_of(&records[i]), stamps[i]));
    return r;
}

/* Tick by tick. */
static int take_calls(struct recorder *recorder, uint32_t tid, const struct agent_record *records,
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
    return stamps ? take_timed_calls(recorder, tid, records, stamps, count)
                  : take_calls(recorder, tid, records, count);
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

static int on_exit_record(struct recorder *recorder, const struct wire_exit *record, size_t size)
{
    pid_t pid = (pid_t)record->tgid;
    bool last = record->header.flags & WIRE_LAST_THREAD;
    int r = inline_backend_end_thread(recorder->inlined, pid, record->header.tid);

    if (!r)
        r = streams_handle(recorder->streams, record, size);
    if (last)
        inline_backend_end_process(recorder->inlined, pid);
    return r;
}

/* The old program is gone, with its stubs; the new one may get others right now. */
static int on_exec_record(struct recorder *recorder, const struct wire_exec *record, size_t size)
{
    pid_t pid = (pid_t)record->header.tid;
    int r = inline_backend_end_thread(recorder->inlined, pid, record->old_tid);

    inline_backend_end_process(recorder->inlined, pid);
    return r ? r : streams_handle(recorder->streams, record, size);
}

/* Two threads run on one thread control block. The new one stands still, or it may have run on slots that the
 * other one works on. */
static int on_shared_block(struct recorder *recorder, const struct wire_fork *record)
{
    int r = inline_backend_share_block(recorder->inlined, record->parent_tid, record->header.tid,
                                       record->thread_block);
    bool in_time = record->header.flags & WIRE_HELD;

    if (in_time)
        in_time = uprobe_backend_release(recorder->backend, (pid_t)record->tgid);
    if (r == -ENOMEM)
        return r;
    if (r > 0 || (!r && in_time) || recorder->closing)
        return 0;
    return trace_writer_loss(recorder->writer, clock_ns(CLOCK_REALTIME), 0,
                             "threads ran on one thread control block", NULL);
}

static int on_fork_record(struct recorder *recorder, const struct wire_fork *record, size_t size)
{
    const struct inline_birth birth = {
        .parent = (pid_t)record->parent_tgid,
        .child = (pid_t)record->tgid,
        .ns = record->header.ns,
        .shares_memory = record->shares & FORK_SHARES_MEMORY,
    };
    bool joins = birth.child != birth.parent && !(record->shares & FORK_IS_LEFT);
    int r = joins ? inline_backend_fork(recorder->inlined, &birth) : 0;

    if (!r && record->shares & FORK_SHARES_BLOCK)
        r = on_shared_block(recorder, record);
    return r || record->shares & FORK_IS_LEFT ? r : streams_handle(recorder->streams, record, size);
}

static int on_slots_lent(struct recorder *recorder, const struct wire_slots *record)
{
    const struct inline_loan loan = {
        .pid = streams_process_of(recorder->streams, record->parent_tid),
        .lender = record->parent_tid,
        .borrower = record->header.tid,
        .offset = agent_cursor_offset(record->cursor),
        .wanted = record->followed,
    };

    return inline_backend_lend(recorder->inlined, &loan);
}

static int on_claim(struct recorder *recorder, const struct wire_claim *record)
{
    uint32_t tid = record->header.tid;

    return inline_backend_claim(recorder->inlined, streams_process_of(recorder->streams, tid), tid,
                                record->ticket, record->area);
}

/* What is not known of a process whose rights have changed, and which shared its parent's buffers; NULL:
 * nothing. `parted`: what inline_backend_part() returned. */
static const char *after_parting(const struct recorder *recorder, pid_t pid, bool held, int parted)
{
    if (!parted)
        return NULL;
    if (parted < 0 && parted != -EBUSY)
        return "its rights have changed, and it still shares its parent's buffers: calls of both may be made "
               "up";
    if (!inline_backend_has(recorder->inlined, pid))
        return "its rights have changed: it has no inline probes any more";
    return held ? NULL : "its rights had changed a moment before it got buffers of its own";
}

static int on_rights(struct recorder *recorder, const struct wire_rights *record)
{
    pid_t pid = (pid_t)record->tgid;
    struct error why = {0};
    bool news, held = record->header.flags & WIRE_HELD;
    const char *loss;
    int parted = recorder->closing ? 0 : inline_backend_part(recorder->inlined, pid, &why), r = 0;

    if (parted == -ENOMEM)
        return parted;
    if (parted > 0)
        r = loader_give_inline(recorder->loader, pid, &news, &why);
    loss = after_parting(recorder, pid, held, parted);
    if (held)
        uprobe_backend_release(recorder->backend, pid);
    if (r == -ENOMEM)
        return r;
    return loss && parted != -ESRCH ? streams_process_loss(recorder->streams, pid, loss) : 0;
}

static int handle_record(void *context, const void *record, size_t size)
{
    struct recorder *recorder = context;
    const struct wire_header *header = record;
    const struct wire_inline *place = record;

    if (header->kind == WIRE_EXIT && size >= sizeof(struct wire_exit))
        return on_exit_record(recorder, record, size);
    if (header->kind == WIRE_EXEC && size >= sizeof(struct wire_exec))
        return on_exec_record(recorder, record, size);
    if (header->kind == WIRE_FORK && size >= sizeof(struct wire_fork))
        return on_fork_record(recorder, record, size);
    if (header->kind == WIRE_CLAIM && size >= sizeof(struct wire_claim))
        return on_claim(recorder, record);
    if (header->kind == WIRE_RIGHTS && size >= sizeof(struct wire_rights))
        return on_rights(recorder, record);
    if (header->kind == WIRE_SLOTS_LENT && size >= sizeof(struct wire_slots))
        return on_slots_lent(recorder, record);
    if (header->kind == WIRE_SLOTS_BACK && size >= sizeof(struct wire_inline))
        return inline_backend_take_back(recorder->inlined, header->tid, agent_cursor_offset(place->cursor));
    if (header->kind == WIRE_INLINE && size >= sizeof(struct wire_inline))
        return inline_backend_read_to(recorder->inlined, streams_process_of(recorder->streams, header->tid),
                                      header->tid, agent_cursor_offset(place->cursor));
    return streams_handle(recorder->streams, record, size);
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
    int r = handle_record(context, record, size);

    if ((recorder->inline_calls > RECORDER_ROUND || !recorder->flushed_ns) &&
        header->ns > recorder->inline_looked_ns + DISORDER_NS)
        recorder->inline_overtaken = true;
    return r ? r : recorder->inline_overtaken;
}

int recorder_inline_consume(struct recorder *recorder, unsigned limit)
{
    int r = inline_backend_look(recorder->inlined), records;

    recorder->inline_calls = 0;
    recorder->inline_overtaken = false;
    recorder->inline_looked_ns = clock_ns(CLOCK_MONOTONIC);
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
