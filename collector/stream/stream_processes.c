/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Streams: the numbers of processes, and how processes and threads enter the store. */
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "collector/process/process.h"
#include "collector/stream/goroutine_streams.h"
#include "collector/stream/process_code.h"
#include "collector/stream/streams_private.h"

/* ------------------------------------------------------------------------------------ numbers */

/* A process has had to give its number to a rank. */
static int move(struct streams *streams, const struct label_move *move)
{
    struct traced_process *process = streams->registry.processes;

    while (process && process->serial != move->serial)
        process = process->hh.next;
    if (process)
        process->number = move->number;
    return move->process_id ? trace_writer_relabel_process(streams->writer, move->process_id, move->number,
                                                           &streams->error)
                            : 0;
}

static int assign_number(struct streams *streams, struct traced_process *process)
{
    struct label_move moved;

    process->serial = ++streams->serials;
    if (labels_assign(&streams->labels, process->serial, process->rank, &process->number, &moved))
        return error_no_memory(&streams->error);
    return moved.serial ? move(streams, &moved) : 0;
}

/* The process may have got a rank. */
static int take_rank(struct streams *streams, struct traced_process *process)
{
    unsigned before = process->number;
    struct label_move moved;
    int r;

    if (labels_rank(&streams->labels, &process->number, process->rank, &moved))
        return error_no_memory(&streams->error);
    r = moved.serial ? move(streams, &moved) : 0;
    return r || !process->process_id || process->number == before
               ? r
               : trace_writer_relabel_process(streams->writer, process->process_id, process->number,
                                              &streams->error);
}

struct traced_process *streams_new_process(struct streams *streams, pid_t pid, int rank, uint64_t started_ns)
{
    struct traced_process *process = registry_add_process(&streams->registry, pid, started_ns);

    if (!process)
        return NULL;
    process->rank = rank;
    return assign_number(streams, process) ? NULL : process;
}

/* A process that runs has its parent, and its children, among those that were attached before. */
static void find_relatives(struct streams *streams, struct traced_process *process)
{
    process->parent = registry_process(&streams->registry, process_parent(process->pid));
    for (struct traced_process *other = streams->registry.processes; other; other = other->hh.next)
        if (!other->parent && !other->parent_id && process_parent(other->pid) == process->pid)
            other->parent = process;
}

int streams_add_process(struct streams *streams, pid_t pid, const pid_t *tids, size_t count,
                        struct error *err)
{
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    struct traced_process *process = streams_new_process(streams, pid, -1, now);

    if (!process)
        return error_no_memory(err);
    find_relatives(streams, process);
    for (size_t i = 0; i < count; i++)
        if (!registry_add_thread(&streams->registry, process, (uint32_t)tids[i], now))
            return error_no_memory(err);
    return 0;
}

/* ------------------------------------------------------------------------------------ entering the store */

/* Whether the process has something to record. */
static bool is_traced(const struct traced_process *process)
{
    for (size_t i = 0; i < process->code_count; i++)
        if (image_is_traced(process->code[i].image))
            return true;
    return false;
}

static int store_process(struct streams *streams, struct traced_process *process)
{
    const struct trace_process_description description = {
        .pid = process->pid,
        .parent_process_id = registry_stored_parent(process),
        .rank = process->rank,
        .exe = process->exe ? process->exe : "?",
        .argv = process->argv ? process->argv : "",
        .started_ns = streams_realtime(streams, process->started_ns),
    };
    int r = trace_writer_process(streams->writer, &description, &process->process_id, &streams->error);

    if (!r)
        labels_stored(&streams->labels, process->number, process->process_id);
    return r;
}

/* The ancestors first, though their own events may come later: inline calls are read behind the records of
 * the kernel side. */
int streams_store_process(struct streams *streams, struct traced_process *process)
{
    while (!process->process_id) {
        struct traced_process *next = process;
        int r;

        for (struct traced_process *parent = process->parent; parent; parent = parent->parent)
            if (!parent->process_id && is_traced(parent))
                next = parent;
        r = store_process(streams, next);
        if (r)
            return r;
    }
    return 0;
}

/* A process that is in the store continues with another program. */
static int store_exec(struct streams *streams, struct traced_process *process)
{
    const struct trace_program_description program = {
        .rank = process->rank,
        .exe = process->exe,
        .argv = process->argv,
        .returns = process->image ? process->image->returns : process->returns,
    };

    return trace_writer_exec(streams->writer, process->process_id, &program, &streams->error);
}

/* A stream has calls and returns or calls alone, from its beginning to its end. A process that continues with a
 * program of the other kind is another one in the store. */
static int part_from_store(struct streams *streams, struct traced_process *process)
{
    uint64_t now = streams_realtime(streams, clock_ns(CLOCK_MONOTONIC));
    struct traced_thread *thread = NULL, *next = NULL;
    int r = 0;

    HASH_ITER (hh, streams->registry.threads, thread, next) {
        if (r || thread->process != process || !thread->writer)
            continue;
        r = thread_writer_end(thread->writer, now, &streams->error);
        thread->writer = NULL;
    }
    if (!r)
        r = trace_writer_process_end(streams->writer, process->process_id, now, -1, &streams->error);
    process->parent_id = process->process_id;
    process->parent = NULL;
    process->process_id = 0;
    return r ? r : assign_number(streams, process);
}

/* The program's goroutines are recorded from now on, if they are to be. */
static int begin_goroutines(struct streams *streams, struct traced_process *process,
                            const struct stream_program *program)
{
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    bool had = process->goroutines != NULL;
    int r = goroutine_streams_end(streams, process, now, -1);

    if (!r && had && process->process_id)
        r = part_from_store(streams, process);
    return r || !program->go ? r
                             : goroutine_streams_new(streams, process, program->go, program->starting,
                                                     &process->goroutines);
}

static bool changes_kind(const struct traced_process *process, const struct traced_image *image)
{
    return image && (image->returns == TRACE_RETURNS_NONE) != (process->returns == TRACE_RETURNS_NONE);
}

int streams_set_program(struct streams *streams, pid_t pid, const struct stream_program *program,
                        struct error *err)
{
    struct traced_process *process = registry_process(&streams->registry, pid);
    int r = 0;

    if (!process || !program->exe || !program->argv) {
        free(program->exe);
        free(program->argv);
        return process ? error_no_memory(err) : 0; /* it has ended meanwhile */
    }
    free(process->exe);
    free(process->argv);
    process->exe = program->exe;
    process->argv = program->argv;
    process->image = program->image;
    process->epoch++;
    process->rank = program->rank;
    process->from_start |= program->starting;
    r = take_rank(streams, process);
    if (!r)
        r = begin_goroutines(streams, process, program);
    if (!r && process->process_id)
        r = changes_kind(process, program->image) ? part_from_store(streams, process)
                                                  : store_exec(streams, process);
    if (r && err)
        *err = streams->error;
    return r;
}

/* The calls that are open may have returned unseen from now on. */
static int infer_from_now(struct streams *streams, const struct traced_process *process)
{
    struct traced_thread *thread = NULL, *next = NULL;
    int r = 0;

    HASH_ITER (hh, streams->registry.threads, thread, next)
        if (!r && thread->process == process && thread->writer)
            r = thread_writer_infers(thread->writer, &streams->error);
    return r;
}

int streams_set_code(struct streams *streams, pid_t pid, const struct stream_code *code, size_t count,
                     struct error *err)
{
    struct traced_process *process = registry_process(&streams->registry, pid);
    enum trace_returns before;

    if (!process)
        return 0; /* it has ended meanwhile */
    before = process->returns;
    if (process_code_set(process, code, count))
        return error_no_memory(err);
    if (process->returns != TRACE_RETURNS_INFERRED || before == TRACE_RETURNS_INFERRED ||
        !infer_from_now(streams, process))
        return 0;
    if (err)
        *err = streams->error;
    return streams->error.code;
}

void streams_mark_images(const struct streams *streams)
{
    for (const struct traced_process *process = streams->registry.processes; process;
         process = process->hh.next)
        process_code_mark_images(process);
}

bool streams_knows_process(struct streams *streams, pid_t pid)
{
    return registry_process(&streams->registry, pid) != NULL;
}

struct thread_writer *streams_thread_writer(struct streams *streams, struct traced_thread *thread)
{
    struct traced_process *process = thread->process;
    AUTO_FREE char *name = NULL;
    char label[32];

    if (thread->writer)
        return thread->writer;
    if (streams_store_process(streams, process))
        return NULL;
    name = process_thread_name(process->pid, (pid_t)thread->tid);
    snprintf(label, sizeof(label), "%u.%u", process->number, thread->number);
    const struct trace_thread_description description = {
        .process_id = process->process_id,
        .tid = (int32_t)thread->tid,
        .label = label,
        .name = name,
        .started_ns = streams_realtime(streams, thread->started_ns),
        .returns = process->returns,
        .call_sites = streams->options.call_sites,
    };
    if (trace_writer_thread(streams->writer, &description, &thread->writer, &streams->error))
        return NULL;
    streams->counts.stored_threads++;
    return thread->writer;
}
