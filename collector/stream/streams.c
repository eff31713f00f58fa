/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/array.h"
#include "collector/stream/streams_private.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "bpf/wire.h"
#include "collector/stream/goroutine_streams.h"
#include "collector/stream/process_code.h"
#include "collector/stream/sync_channels.h"
#include "collector/stream/sync_streams.h"

#define ANCHOR_NS 1000000u /* a time every millisecond of activity */

int streams_new(const struct stream_options *options, struct image_table *images, struct trace_writer *writer,
                struct streams **ret_streams, struct error *err)
{
    struct streams *streams = calloc(1, sizeof(*streams));

    if (!streams)
        return error_no_memory(err);
    streams->options = *options;
    streams->images = images;
    streams->writer = writer;
    registry_init(&streams->registry);
    streams->to_realtime_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
    *ret_streams = streams;
    return 0;
}

void streams_free(struct streams *streams)
{
    if (!streams)
        return;
    registry_release(&streams->registry);
    labels_release(&streams->labels);
    sync_channels_release(streams->channels);
    free(streams->missed);
    free(streams);
}

const struct error *streams_error(const struct streams *streams)
{
    return &streams->error;
}

size_t streams_live_processes(const struct streams *streams)
{
    return HASH_COUNT(streams->registry.processes);
}

int streams_processes(const struct streams *streams, pid_t **ret_pids, size_t *ret_count)
{
    pid_t *pids = calloc(streams_live_processes(streams) + 1, sizeof(*pids));
    size_t count = 0;

    if (!pids)
        return -ENOMEM;
    for (struct traced_process *process = streams->registry.processes; process; process = process->hh.next)
        pids[count++] = process->pid;
    *ret_pids = pids;
    *ret_count = count;
    return 0;
}

struct stream_counts streams_counts(const struct streams *streams)
{
    return streams->counts;
}

uint64_t streams_realtime(const struct streams *streams, uint64_t monotonic_ns)
{
    return monotonic_ns + streams->to_realtime_ns;
}

/* ------------------------------------------------------------------------------------ calls and returns */

static int no_memory(struct streams *streams)
{
    return error_no_memory(&streams->error);
}

static int cannot_append(struct streams *streams, int code)
{
    return error_set(&streams->error, code, NULL, "cannot append an event");
}

bool streams_wants_anchor(const struct streams *streams, const struct traced_thread *thread, uint64_t ns)
{
    if (streams->options.times == STREAM_TIMES_NONE || !ns)
        return false;
    /* Times of inline calls are those of ticks, which may lie before one that was told already. */
    return streams->options.times != STREAM_TIMES_ANCHOR || ns >= thread->last_anchor_ns + ANCHOR_NS;
}

/* Says when the event that follows happened, if that is due. */
static int anchor(struct streams *streams, struct traced_thread *thread, uint64_t ns)
{
    if (!streams_wants_anchor(streams, thread, ns))
        return 0;
    if (ns < thread->started_ns) /* the tick of an inline call may have begun before its thread */
        ns = thread->started_ns;
    thread->last_anchor_ns = ns;
    return thread_writer_anchor(thread->writer, streams_realtime(streams, ns));
}

int streams_write_returns(struct streams *streams, struct thread_writer *writer, size_t count)
{
    int r = 0;

    while (!r && count--)
        r = thread_writer_return(writer);
    return r ? cannot_append(streams, r) : 0;
}

static struct traced_thread *thread_of(struct streams *streams, const struct wire_header *header)
{
    struct traced_thread *thread = registry_thread(&streams->registry, header->tid);

    if (!thread)
        streams->counts.strays++;
    return thread;
}

uint32_t streams_caller_of(const struct streams *streams, const struct traced_process *process,
                           uint32_t function, uint64_t return_address)
{
    const struct traced_image *program = process->image;
    const struct stream_code *code;
    uint32_t caller = NO_FUNCTION;

    if (!return_address)
        return CALL_STACK_NO_CALLER;
    /* A return address points behind the call, which may be the caller's last instruction. */
    code = process_code_find(process, return_address - 1);
    if (code && image_is_traced(code->image))
        caller = image_table_find(streams->images, code->image, return_address - 1 - code->load_bias);
    /* main() is called by the C library, when all constructors have come back: only _start is open then. */
    if (caller == NO_FUNCTION && program && function == program->main_function)
        caller = program->entry_function;
    return caller == NO_FUNCTION ? CALL_STACK_NO_CALLER : caller;
}

uint64_t streams_caller_depth(const struct traced_process *process, uint64_t return_address)
{
    const struct stream_code *code = return_address ? process_code_find(process, return_address - 1) : NULL;

    if (!code || !image_is_traced(code->image) || elf_image_facts(code->image->elf)->is_go)
        return 0;
    return caller_frames_depth(&code->image->callers, code->image->elf, code->image->functions,
                               code->image->function_count, return_address - code->load_bias);
}

int streams_site(struct streams *streams, const struct traced_process *process, uint64_t return_address,
                 uint32_t *ret_site_id)
{
    const struct stream_code *code = return_address ? process_code_find(process, return_address - 1) : NULL;

    *ret_site_id = 0;
    return code ? image_table_site_id(streams->images, streams->writer, code->image,
                                      return_address - code->load_bias, ret_site_id, &streams->error)
                : 0;
}

static int append_call(struct streams *streams, struct traced_thread *thread, uint32_t function_id,
                       uint64_t return_address, bool assumed)
{
    uint32_t site_id = 0;
    int r = 0;

    if (streams->options.call_sites)
        r = streams_site(streams, thread->process, return_address, &site_id);
    if (r)
        return r;
    r = assumed ? thread_writer_call_assumed(thread->writer, function_id, site_id)
                : thread_writer_call_from(thread->writer, function_id, site_id);
    return r ? cannot_append(streams, r) : 0;
}

int streams_write_call(struct streams *streams, struct traced_thread *thread,
                       const struct call_evidence *call, uint64_t return_address, uint64_t ns,
                       struct thread_step *ret_step)
{
    struct call_evidence evidence = *call;
    struct call_effect effect = {0};
    uint32_t function_id;
    int r;

    if (image_table_function_id(streams->images, streams->writer, call->function, &function_id,
                                &streams->error))
        return streams->error.code;
    if (!streams_thread_writer(streams, thread))
        return streams->error.code;
    if (evidence.caller != CALL_STACK_NO_CALLER && !streams_sees_all(streams, evidence.caller))
        evidence.caller = CALL_STACK_NO_CALLER; /* the frame that it came out of may be none that was seen */
    if (thread->process->returns != TRACE_RETURNS_NONE &&
        call_stack_call(&thread->stack, &evidence, streams_entry_function(thread->process), &effect))
        return no_memory(streams);
    if (streams->options.watch && call_watch_call(streams->options.watch, thread, &evidence, ns))
        return no_memory(streams);
    if (ret_step)
        *ret_step = (struct thread_step){
            .returns = (uint32_t)effect.closed, .function_id = function_id, .assumed = effect.assumed};
    r = streams_write_returns(streams, thread->writer, effect.closed);
    if (!r)
        r = anchor(streams, thread, ns); /* behind the inferred returns: their times are unknown */
    return r ? r : append_call(streams, thread, function_id, return_address, effect.assumed);
}

static struct call_evidence evidence_of(const struct streams *streams, const struct wire_call *record)
{
    return (struct call_evidence){
        .sp = wire_sp(record),
        .on_signal_stack = record->header.flags & WIRE_ON_SIGNAL_STACK,
        .function = image_table_probed_function(streams->images, record->function),
        .caller = CALL_STACK_NO_CALLER,
        .return_unseen = record->header.flags & WIRE_RETURN_UNSEEN,
    };
}

static int handle_call(struct streams *streams, const struct wire_call *record)
{
    struct traced_thread *thread = thread_of(streams, &record->header);
    const struct call_evidence call = evidence_of(streams, record);

    return thread ? streams_write_call(streams, thread, &call, 0, record->header.ns, NULL) : 0;
}

static int handle_call_from(struct streams *streams, const struct wire_call_from *record)
{
    struct traced_thread *thread = thread_of(streams, &record->call.header);
    struct call_evidence call = evidence_of(streams, &record->call);

    if (!thread)
        return 0;
    call.caller = streams_caller_of(streams, thread->process, call.function, record->return_address);
    /* The kernel side knows its own calls only: where it finds a slot overwritten, an inline call may have
     * come since. */
    call.gone = thread->has_inline_calls ? 0 : record->gone;
    call.return_address = record->return_address;
    if (call.caller == CALL_STACK_NO_CALLER)
        call.caller_depth = streams_caller_depth(thread->process, record->return_address);
    return streams_write_call(streams, thread, &call, record->return_address, record->call.header.ns, NULL);
}

int streams_write_seen_return(struct streams *streams, struct traced_thread *thread, size_t closed,
                              uint64_t ns)
{
    /* All but the last were inferred. A thread with an open call has a writer. */
    int r = streams_write_returns(streams, thread->writer, closed - 1);

    if (r)
        return r;
    r = anchor(streams, thread, ns);
    if (!r)
        r = thread_writer_return(thread->writer);
    return r ? cannot_append(streams, r) : 0;
}

static int handle_return(struct streams *streams, const struct wire_call *record)
{
    struct traced_thread *thread = thread_of(streams, &record->header);
    size_t closed;

    if (!thread || thread->process->returns == TRACE_RETURNS_NONE)
        return 0;
    closed = call_stack_return(&thread->stack, wire_sp(record), record->header.flags & WIRE_ON_SIGNAL_STACK);
    if (!closed) {
        streams->counts.unmatched_returns++;
        return 0;
    }
    if (streams->options.watch)
        call_watch_return(streams->options.watch, thread, record->header.ns);
    return streams_write_seen_return(streams, thread, closed, record->header.ns);
}

int streams_write_loss(struct streams *streams, struct traced_thread *thread, uint64_t ns, uint64_t calls,
                       uint64_t returns)
{
    struct thread_writer *writer = streams_thread_writer(streams, thread);

    if (!writer)
        return streams->error.code;
    if (returns == STREAM_LOSS_MIXED)
        return thread_writer_lost(writer, streams_realtime(streams, ns), calls, "ring full", &streams->error);
    return thread_writer_lost_by_kind(writer, streams_realtime(streams, ns), calls, returns, "ring full",
                                      &streams->error);
}

static int handle_lost(struct streams *streams, const struct wire_lost *record)
{
    struct traced_thread *thread = thread_of(streams, &record->header);
    int r = 0;

    if (thread && record->go)
        r = goroutine_streams_lost(streams, thread->process, record->header.tid, record->header.ns,
                                   record->go);
    if (!r && thread && record->sync)
        r = sync_stream_lost(streams, thread, record->header.ns, record->sync);
    if (r || !thread || !(record->calls || record->returns))
        return r;
    return streams_write_loss(streams, thread, record->header.ns, record->calls, record->returns);
}

static int handle_go(struct streams *streams, const struct wire_go *record, size_t size)
{
    struct traced_thread *thread = thread_of(streams, &record->header);

    return thread ? goroutine_streams_event(streams, thread->process, record, size) : 0;
}

static int handle_sync(struct streams *streams, const struct wire_sync *record, size_t size)
{
    struct traced_thread *thread = thread_of(streams, &record->header);

    return thread ? sync_stream_record(streams, thread, record, size) : 0;
}

/* ------------------------------------------------------------------------------------ records */

/* The least that a record of each kind has. */
static const size_t record_sizes[] = {
    [WIRE_CALL] = sizeof(struct wire_call),
    [WIRE_RETURN] = sizeof(struct wire_call),
    [WIRE_CALL_FROM] = sizeof(struct wire_call_from),
    [WIRE_LOST] = sizeof(struct wire_lost),
    [WIRE_FORK] = sizeof(struct wire_fork),
    [WIRE_EXEC] = sizeof(struct wire_exec),
    [WIRE_EXIT] = sizeof(struct wire_exit),
    [WIRE_LIBRARIES] = sizeof(struct wire_libraries),
    [WIRE_GO] = sizeof(struct wire_go),
    [WIRE_SYNC] = sizeof(struct wire_sync),
    [WIRE_INLINE] = sizeof(struct wire_inline),
    [WIRE_SLOTS_SHARED] = sizeof(struct wire_slots),
    [WIRE_SLOTS_BACK] = sizeof(struct wire_inline),
    [WIRE_OVER_BUDGET] = sizeof(struct wire_over_budget),
    [WIRE_CLAIM] = sizeof(struct wire_claim),
    [WIRE_REWRITE] = sizeof(struct wire_rewrite),
    [WIRE_RIGHTS] = sizeof(struct wire_rights),
};

int streams_handle(void *context, const void *record, size_t size)
{
    const struct wire_header *header = record;
    struct streams *streams = context;

    if (size < sizeof(*header) || header->kind >= ARRAY_SIZE(record_sizes) ||
        size < record_sizes[header->kind])
        return error_say(&streams->error, -EBADMSG, "a record of the kernel side has a wrong size or kind");
    switch ((enum wire_kind)header->kind) {
    case WIRE_CALL:
        return handle_call(streams, record);
    case WIRE_CALL_FROM:
        return handle_call_from(streams, record);
    case WIRE_RETURN:
        return handle_return(streams, record);
    case WIRE_LOST:
        return handle_lost(streams, record);
    case WIRE_FORK:
        return streams_fork(streams, record);
    case WIRE_EXEC:
        return streams_exec(streams, record);
    case WIRE_EXIT:
        return streams_exit(streams, record);
    case WIRE_GO:
        return handle_go(streams, record, size);
    case WIRE_SYNC:
        return handle_sync(streams, record, size);
    case WIRE_INLINE:
    case WIRE_SLOTS_SHARED:
    case WIRE_SLOTS_BACK:
    case WIRE_CLAIM:
    case WIRE_RIGHTS:
    case WIRE_LIBRARIES:
    case WIRE_OVER_BUDGET:
    case WIRE_REWRITE:
        return 0;     /* the recorder's */
    case WIRE_PACKED: /* the backend unpacks it */
        break;
    }
    return error_say(&streams->error, -EBADMSG, "a record of the kernel side has no kind");
}
