/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/stream/sync_streams.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <uthash.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "collector/process/wait_status.h"
#include "collector/stream/streams_private.h"
#include "collector/stream/sync_channels.h"
#include "store/streams/sync_events.h"

/* A thread by what pthread_self() says there. */
struct thread_block {
    uint64_t address;
    unsigned thread; /* T */
    UT_hash_handle hh;
};

struct sync_stream {
    struct process_writer *writer; /* NULL: not in the store yet */
    int64_t process_id;            /* that the writer is of */
    char *library, *missed;        /* whose locks are seen, and those that are not */
    struct thread_block *blocks;
};

#define OPEN_MAX 32 /* operations of a thread, one in the other; of more the outermost are forgotten */

struct open_operation {
    uint8_t kind;
    bool function;
    uint64_t sp, object, other;
};

struct sync_thread {

    size_t count;
    struct open_operation open[OPEN_MAX];
};

static void forget_blocks(struct sync_stream *sync)
{
    struct thread_block *block = NULL, *next = NULL;

    HASH_ITER (hh, sync->blocks, block, next) {
        HASH_DEL(sync->blocks, block);
        free(block);
    }
}

void sync_stream_free(struct sync_stream *sync)
{
    if (!sync)
        return;
    forget_blocks(sync);
    free(sync->library);
    free(sync->missed);
    free(sync);
}

void sync_thread_free(struct sync_thread *thread)
{
    free(thread);
}

static int no_memory(struct streams *streams)
{
    return error_no_memory(&streams->error), -ENOMEM;
}

/* ------------------------------------------------------------------------------------------ entering */

/* NULL: no memory. */
static struct sync_stream *stream_of(struct streams *streams, struct traced_process *process)
{
    if (!process->sync)
        process->sync = calloc(1, sizeof(*process->sync));
    if (!process->sync)
        no_memory(streams);
    return process->sync;
}

/* Tells the store whose locks are seen. */
static int store_library(struct streams *streams, struct sync_stream *sync)
{
    AUTO_FREE char *why = NULL;
    int r;

    if (!sync->library)
        return trace_writer_sync_library(streams->writer, sync->process_id, NULL,
                                         "no C library with locks that are known is mapped", &streams->error);
    r = trace_writer_sync_library(streams->writer, sync->process_id, sync->library, NULL, &streams->error);
    if (r || !sync->missed)
        return r;
    if (asprintf(&why, "synchronisation not seen:%s", sync->library) < 0)
        return why = NULL, no_memory(streams);
    return trace_writer_tag(streams->writer, why, sync->missed, &streams->error);
}

/* The process's stream in the store, made when it is first asked for. */
static int enter_process(struct streams *streams, struct traced_process *process, uint64_t ns)
{
    struct sync_stream *sync = stream_of(streams, process);
    struct sync_process_description description = {.from_ns = streams_realtime(streams, ns),
                                                   .from_start = process->from_start};
    int r = sync ? streams_store_process(streams, process) : -ENOMEM;

    if (r || (sync->writer && sync->process_id == process->process_id))
        return r;
    description.process_id = sync->process_id = process->process_id;
    r = trace_writer_sync_process(streams->writer, &description, &sync->writer, &streams->error);
    return r ? r : store_library(streams, sync);
}

static int same_text(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : a == b;
}

int streams_set_sync_library(struct streams *streams, pid_t pid, const char *path, const char *missed,
                             struct error *err)
{
    struct traced_process *process = registry_process(&streams->registry, pid);
    struct sync_stream *sync = process ? stream_of(streams, process) : NULL;
    int r = 0;

    if (!process || (sync && same_text(sync->library, path)))
        return 0;
    if (sync) {
        free(sync->library);
        free(sync->missed);
        sync->library = strdup(path);
        sync->missed = missed ? strdup(missed) : NULL;
    }
    if (!sync || !sync->library || (missed && !sync->missed))
        return error_no_memory(err), -ENOMEM;
    if (sync->writer)
        r = store_library(streams, sync);
    if (r && err)
        *err = streams->error;
    return r;
}

/* ------------------------------------------------------------------------------------------ appending */

static int append(struct streams *streams, struct traced_thread *thread, struct process_event *event)
{
    struct thread_writer *writer = streams_thread_writer(streams, thread);
    int r;

    if (!writer)
        return streams->error.code;
    event->thread = thread->number;
    event->position = thread_writer_events(writer);
    r = process_writer_append(thread->process->sync->writer, event);
    return r ? error_set(&streams->error, r, NULL, "cannot append a synchronisation event") : 0;
}

/* The beginning of a thread without a record of its creation: it, or its process, is from before the
 * recording, or is the command itself. */
static int begin_thread(struct streams *streams, struct traced_thread *thread, uint64_t ns)
{
    bool first = thread->process->from_start && !thread->number;
    struct process_event event = {.ns = streams_realtime(streams, ns), .kind = SYNC_THREAD_BEGIN};

    thread->sync = calloc(1, sizeof(*thread->sync));
    if (!thread->sync)
        return no_memory(streams);
    event.other = SYNC_UNKNOWN_THREAD;
    if (first) {
        event.kind = SYNC_PROCESS_BEGIN;
        event.other = 0;
    }
    return append(streams, thread, &event);
}

/* Ready for events of the thread. */
static int enter(struct streams *streams, struct traced_thread *thread, uint64_t ns)
{
    int r = enter_process(streams, thread->process, ns);

    return r || thread->sync ? r : begin_thread(streams, thread, ns);
}

/* An event at one moment, without an object. */
static int append_at(struct streams *streams, struct traced_thread *thread, uint64_t ns,
                     enum sync_event_kind kind, uint64_t other, int64_t result)
{
    struct process_event event = {.ns = streams_realtime(streams, ns), .kind = (uint8_t)kind};
    int r = enter(streams, thread, ns);

    event.other = other;
    event.result = result;
    return r ? r : append(streams, thread, &event);
}

/* ------------------------------------------------------------------------------------------ operations */

static void push(struct sync_thread *thread, const struct open_operation *operation)
{
    if (thread->count == OPEN_MAX)
        memmove(thread->open, thread->open + 1, --thread->count * sizeof(*thread->open));
    thread->open[thread->count++] = *operation;
}

/* A function that begins at `sp` says that those further down the stack have been left. */
static void drop_left(struct sync_thread *thread, uint64_t sp)
{
    size_t kept = 0;

    for (size_t i = 0; i < thread->count; i++)
        if (!thread->open[i].function || thread->open[i].sp > sp)
            thread->open[kept++] = thread->open[i];
    thread->count = kept;
}

/* Takes the function out that returns from `sp`, with all that began inside it. False: there is none. */
static bool take_function(struct sync_thread *thread, uint64_t sp, struct open_operation *ret_operation)
{
    for (size_t i = thread->count; i-- > 0;) {
        if (!thread->open[i].function || thread->open[i].sp != sp)
            continue;
        *ret_operation = thread->open[i];
        thread->count = i;
        return true;
    }
    return false;
}

static void take_call(struct sync_thread *thread, uint8_t kind)
{
    for (size_t i = thread->count; i-- > 0;) {
        if (thread->open[i].function || thread->open[i].kind != kind)
            continue;
        thread->count = i;
        return;
    }
}

static bool has_end(unsigned kind)
{
    return kind != SYNC_MUTEX_LOCK && kind != SYNC_RWLOCK_RDLOCK && kind != SYNC_RWLOCK_WRLOCK &&
           kind != SYNC_SPIN_LOCK;
}

/* The thread that a pthread_t means. */
static uint64_t thread_of_block(const struct sync_stream *sync, uint64_t address)
{
    struct thread_block *block = NULL;

    HASH_FIND(hh, sync->blocks, &address, sizeof(address), block);
    return block ? block->thread : SYNC_UNKNOWN_THREAD;
}

/* ------------------------------------------------------------------------------------------ functions */

static int function_begins(struct streams *streams, struct traced_thread *thread,
                           const struct wire_sync *record)
{
    struct process_event event = {.ns = streams_realtime(streams, record->header.ns),
                                  .kind = record->operation,
                                  .phase = record->phase == SYNC_WIRE_AT ? SYNC_AT : SYNC_BEGIN,
                                  .object = record->object};
    struct open_operation operation = {.kind = record->operation, .function = true, .sp = record->sp};

    event.other = record->declared ? record->declared : record->other;
    if (event.kind == SYNC_THREAD_JOIN) {
        event.other = thread_of_block(thread->process->sync, record->object);
        event.object = 0;
    }
    if (streams_site(streams, thread->process, record->place, &event.site))
        return streams->error.code;
    if (event.phase == SYNC_BEGIN && has_end(event.kind)) {
        operation.object = event.object;
        operation.other = event.other;
        drop_left(thread->sync, record->sp);
        push(thread->sync, &operation);
    }
    return append(streams, thread, &event);
}

static int function_returns(struct streams *streams, struct traced_thread *thread,
                            const struct wire_sync *record)
{
    struct open_operation operation;
    struct process_event event = {.ns = streams_realtime(streams, record->header.ns), .phase = SYNC_END};

    if (!take_function(thread->sync, record->sp, &operation))
        return 0; /* a function that is not recorded, or that began before the recording */
    event.kind = operation.kind;
    event.object = operation.object;
    event.other = operation.other;
    if (event.kind != SYNC_SINK && event.kind != SYNC_HANDLER)
        event.result = (int32_t)record->result;
    return append(streams, thread, &event);
}

/* ------------------------------------------------------------------------------------------ system calls */

/* Reading and writing is receiving and sending where another process is at the other end. */
static uint8_t kind_of_call(const struct wire_sync *record, const struct wire_sync_file *file)
{
    uint16_t mode = record->declared;
    bool talks = S_ISSOCK(mode) || S_ISFIFO(mode);

    if (file && file->peeked)
        return SYNC_POLL;
    if (record->operation == SYNC_READ && talks)
        return SYNC_RECEIVE;
    return record->operation == SYNC_WRITE && talks ? SYNC_SEND : record->operation;
}

static int fill_channel(struct streams *streams, struct traced_thread *thread, const struct wire_sync *record,
                        const struct wire_sync_file *file, struct process_event *event)
{
    bool sends = event->kind == SYNC_SEND;
    struct sync_known_channel *channel;
    int r = sync_channel_of(streams, thread->process, record, file, sends, &channel);

    event->object = 0;
    event->other = 0;
    if (r || !channel)
        return r;
    event->object = sync_channel_number(channel);
    if (file && (sends || event->kind == SYNC_RECEIVE))
        event->other =
            sync_channel_advance(channel, file, sends, record->result > 0 ? (uint64_t)record->result : 0);
    return 0;
}

static int system_call(struct streams *streams, struct traced_thread *thread, const struct wire_sync *record,
                       const struct wire_sync_file *file)
{
    static const uint8_t phases[] = {
        [SYNC_WIRE_AT] = SYNC_AT, [SYNC_WIRE_BEGIN] = SYNC_BEGIN, [SYNC_WIRE_END] = SYNC_END};
    struct process_event event = {.ns = streams_realtime(streams, record->header.ns),
                                  .kind = kind_of_call(record, file),
                                  .phase = phases[record->phase],
                                  .object = record->object,
                                  .result = record->result};

    event.other = record->other;
    if (record->fd >= 0 && fill_channel(streams, thread, record, file, &event))
        return streams->error.code;
    if (event.kind == SYNC_IO)
        event.other = record->sp;
    if (event.phase == SYNC_BEGIN)
        push(thread->sync, &(struct open_operation){.kind = event.kind});
    else if (event.phase == SYNC_END)
        take_call(thread->sync, event.kind);
    return append(streams, thread, &event);
}

int sync_stream_record(struct streams *streams, struct traced_thread *thread, const struct wire_sync *record,
                       size_t size)
{
    bool is_file = record->fd >= 0 && record->phase == SYNC_WIRE_END;
    int r;

    if (!record->operation && record->phase != SYNC_WIRE_RETURN)
        return error_say(&streams->error, -EBADMSG, "a record of the kernel side has no operation");
    if (is_file && size < sizeof(struct wire_sync_file))
        return error_say(&streams->error, -EBADMSG, "a record of the kernel side has a wrong size");
    if (!thread->process->exe)
        return 0; /* what launches the command */
    r = enter(streams, thread, record->header.ns);
    if (r)
        return r;
    if (record->phase == SYNC_WIRE_RETURN)
        return function_returns(streams, thread, record);
    if (record->header.flags & WIRE_OF_FUNCTION)
        return function_begins(streams, thread, record);
    return system_call(streams, thread, record, is_file ? (const struct wire_sync_file *)record : NULL);
}

/* ------------------------------------------------------------------------------------------ life */

/* A pthread_t means the latest thread at that address: an earlier one has been joined. */
static int note_block(struct streams *streams, struct sync_stream *sync, uint64_t address, unsigned thread)
{
    struct thread_block *block = NULL;

    HASH_FIND(hh, sync->blocks, &address, sizeof(address), block);
    if (!block) {
        block = calloc(1, sizeof(*block));
        if (!block)
            return no_memory(streams);
        block->address = address;
        HASH_ADD(hh, sync->blocks, address, sizeof(block->address), block);
    }
    block->thread = thread;
    return 0;
}

int sync_stream_fork(struct streams *streams, const struct wire_fork *record, bool is_process)
{
    struct traced_thread *maker = registry_thread(&streams->registry, record->parent_tid);
    struct traced_thread *made = registry_thread(&streams->registry, record->header.tid);
    struct sync_stream *sync = stream_of(streams, made->process);
    uint64_t ns = record->header.ns;
    int r = sync ? 0 : -ENOMEM;

    if (!r && maker)
        r = append_at(streams, maker, ns, is_process ? SYNC_PROCESS_FORK : SYNC_THREAD_CREATE,
                      is_process ? record->tgid : made->number, 0);
    if (!r && record->thread_block)
        r = note_block(streams, sync, record->thread_block, made->number);
    if (!r)
        r = enter_process(streams, made->process, ns);
    if (r)
        return r;
    if (is_process && maker && maker->process->sync->library) {
        r = streams_set_sync_library(streams, made->process->pid, maker->process->sync->library,
                                     maker->process->sync->missed, NULL);
        if (r)
            return r;
    }
    made->sync = calloc(1, sizeof(*made->sync));
    if (!made->sync)
        return no_memory(streams);
    return append_at(streams, made, ns, is_process ? SYNC_PROCESS_BEGIN : SYNC_THREAD_BEGIN,
                     is_process ? record->parent_tgid
                     : maker    ? maker->number
                                : SYNC_UNKNOWN_THREAD,
                     0);
}

int sync_stream_exec(struct streams *streams, struct traced_thread *thread, uint64_t ns)
{
    bool known = thread->process->sync && thread->process->sync->writer;
    int r = known ? append_at(streams, thread, ns, SYNC_PROCESS_EXEC, 0, 0) : 0;

    if (thread->sync)
        thread->sync->count = 0;
    if (thread->process->sync)
        forget_blocks(thread->process->sync);
    return r;
}

int sync_stream_exit(struct streams *streams, struct traced_thread *thread, const struct wire_exit *record)
{
    int r = append_at(streams, thread, record->header.ns, SYNC_THREAD_END, 0, 0);

    return r || !(record->header.flags & WIRE_LAST_THREAD)
               ? r
               : append_at(streams, thread, record->header.ns, SYNC_PROCESS_EXIT, 0,
                           wait_status_code((int)record->exit_code));
}

int sync_stream_lost(struct streams *streams, struct traced_thread *thread, uint64_t ns, uint64_t count)
{
    int r = append_at(streams, thread, ns, SYNC_LOST, 0, (int64_t)count);

    return r ? r
             : trace_writer_loss(streams->writer, streams_realtime(streams, ns), count,
                                 "synchronisation events: ring full", &streams->error);
}
