/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Processes and threads begin, continue with another program, and end. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "bpf/wire.h"
#include "collector/process/wait_status.h"
#include "collector/stream/goroutine_streams.h"
#include "collector/stream/process_code.h"
#include "collector/stream/streams_private.h"
#include "collector/stream/sync_streams.h"

static int end_thread(struct streams *streams, struct traced_thread *thread, uint64_t ns)
{
    int r = streams_resolve_thread(streams, thread, ns);

    if (streams->options.watch)
        call_watch_check(streams->options.watch, thread, ns, 0);
    if (!r && thread->writer)
        r = thread_writer_end(thread->writer, streams_realtime(streams, ns), &streams->error);
    registry_remove_thread(&streams->registry, thread);
    return r;
}

static int end_threads(struct streams *streams, struct traced_process *process, uint64_t ns)
{
    struct traced_thread *thread = NULL, *next = NULL;
    int r = 0;

    HASH_ITER (hh, streams->registry.threads, thread, next)
        if (!r && thread->process == process)
            r = end_thread(streams, thread, ns);
    return r;
}

static int end_process(struct streams *streams, struct traced_process *process, uint64_t ns, int status)
{
    int r = end_threads(streams, process, ns);

    if (!r)
        r = goroutine_streams_end(streams, process, ns, status);
    if (!r && process->process_id)
        r = trace_writer_process_end(streams->writer, process->process_id, streams_realtime(streams, ns),
                                     status, &streams->error);
    registry_remove_process(&streams->registry, process);
    return r;
}

/* A child runs its parent's program until it execs. */
static struct traced_process *fork_process(struct streams *streams, const struct wire_fork *record)
{
    struct traced_process *parent = registry_process(&streams->registry, (pid_t)record->parent_tgid);
    struct traced_process *child =
        streams_new_process(streams, (pid_t)record->tgid, parent ? parent->rank : -1, record->header.ns);

    if (!child || !parent)
        return child;
    child->parent = parent;
    child->image = parent->image;
    child->returns = parent->returns;
    child->from_start = parent->from_start;
    child->exe = parent->exe ? strdup(parent->exe) : NULL;
    child->argv = parent->argv ? strdup(parent->argv) : NULL;
    return process_code_set(child, parent->code, parent->code_count) ? NULL : child;
}

int streams_fork(struct streams *streams, const struct wire_fork *record)
{
    struct traced_thread *stale = registry_thread(&streams->registry, record->header.tid);
    struct traced_process *process;
    bool child = false;

    /* When attaching, /proc shows a new thread before its record comes. */
    if (stale && stale->process->pid == (pid_t)record->tgid && !stale->writer)
        return 0;
    /* The tid came round again and the record of its first owner's end was lost. */
    if (stale && end_thread(streams, stale, record->header.ns))
        return streams->error.code;
    process = registry_process(&streams->registry, (pid_t)record->tgid);
    if (!process) {
        process = fork_process(streams, record);
        child = true;
    }
    if (!process || !registry_add_thread(&streams->registry, process, record->header.tid, record->header.ns))
        return streams->error.code ? streams->error.code : error_no_memory(&streams->error);
    if (streams->options.sync && sync_stream_fork(streams, record, child))
        return streams->error.code;
    return 0;
}

/* The thread that called exec becomes the main thread, whatever it was; all others are gone. */
static struct traced_thread *main_thread_after_exec(struct streams *streams, struct traced_process *process,
                                                    const struct wire_exec *record)
{
    struct traced_thread *caller = registry_thread(&streams->registry, record->old_tid), *thread, *next;

    HASH_ITER (hh, streams->registry.threads, thread, next)
        if (thread->process == process && thread != caller && end_thread(streams, thread, record->header.ns))
            return NULL;
    if (!caller || caller->process != process)
        return registry_add_thread(&streams->registry, process, record->header.tid, record->header.ns);
    if (caller->tid != record->header.tid)
        registry_rename_thread(&streams->registry, caller, record->header.tid);
    return caller;
}

/* The process continues with another program. */
int streams_exec(struct streams *streams, const struct wire_exec *record)
{
    pid_t pid = (pid_t)record->header.tid;
    struct traced_process *process = registry_process(&streams->registry, pid);
    struct traced_thread *thread;

    if (!process)
        process = streams_new_process(streams, pid, -1, record->header.ns);
    if (!process)
        return streams->error.code ? streams->error.code : error_no_memory(&streams->error);
    thread = main_thread_after_exec(streams, process, record);
    if (!thread)
        return streams->error.code ? streams->error.code : error_no_memory(&streams->error);
    if (streams->options.sync && sync_stream_exec(streams, thread, record->header.ns))
        return streams->error.code;
    call_stack_replace(&thread->stack, streams_entry_function(process));
    thread->watched.count = 0;
    process->image = NULL;
    process->epoch++;
    return 0;
}

/* What a thread is called when it ends: it may have got its name behind its first call, or have been gone
 * when it was asked for. */
static int name_thread(struct streams *streams, const struct traced_thread *thread,
                       const struct wire_exit *record)
{
    char name[sizeof(record->comm) + 1] = "";

    memcpy(name, record->comm, sizeof(record->comm));
    return thread->writer && *name ? thread_writer_name(thread->writer, name, &streams->error) : 0;
}

int streams_exit(struct streams *streams, const struct wire_exit *record)
{
    struct traced_thread *thread = registry_thread(&streams->registry, record->header.tid);
    struct traced_process *process = registry_process(&streams->registry, (pid_t)record->tgid);
    int r = 0;

    if (thread && streams->options.sync)
        r = sync_stream_exit(streams, thread, record);
    if (!r && thread)
        r = name_thread(streams, thread, record);
    if (!r && thread)
        r = end_thread(streams, thread, record->header.ns);
    if (!r && process && record->header.flags & WIRE_LAST_THREAD)
        r = end_process(streams, process, record->header.ns,
                        record->header.flags & WIRE_UNFOLLOWED ? -1
                                                               : wait_status_code((int)record->exit_code));
    return r;
}
