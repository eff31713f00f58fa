/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/stream/registry.h"

#include <stdlib.h>

#include "collector/stream/goroutine_streams.h"
#include "collector/stream/sync_streams.h"

void registry_init(struct registry *registry)
{
    *registry = (struct registry){.paths_memory_left = REGISTRY_PATHS_MEMORY};
}

struct traced_process *registry_process(struct registry *registry, pid_t pid)
{
    struct traced_process *process;

    HASH_FIND(hh, registry->processes, &pid, sizeof(pid), process);
    return process;
}

struct traced_thread *registry_thread(struct registry *registry, uint32_t tid)
{
    struct traced_thread *thread;

    if (registry->last && registry->last->tid == tid)
        return registry->last;
    HASH_FIND(hh, registry->threads, &tid, sizeof(tid), thread);
    if (thread)
        registry->last = thread;
    return thread;
}

struct traced_process *registry_add_process(struct registry *registry, pid_t pid, uint64_t started_ns)
{
    struct traced_process *process = calloc(1, sizeof(*process));

    if (!process)
        return NULL;
    process->pid = pid;
    process->rank = -1;
    process->started_ns = started_ns;
    HASH_ADD(hh, registry->processes, pid, sizeof(process->pid), process);
    return process;
}

struct traced_thread *registry_add_thread(struct registry *registry, struct traced_process *process,
                                          uint32_t tid, uint64_t started_ns)
{
    struct traced_thread *thread = calloc(1, sizeof(*thread));

    if (!thread)
        return NULL;
    thread->tid = tid;
    thread->process = process;
    thread->number = process->next_thread++;
    thread->started_ns = started_ns;
    inline_paths_init(&thread->paths, &registry->paths_memory_left);
    inline_history_init(&thread->history, &registry->paths_memory_left);
    HASH_ADD(hh, registry->threads, tid, sizeof(thread->tid), thread);
    return thread;
}

void registry_remove_thread(struct registry *registry, struct traced_thread *thread)
{
    if (registry->last == thread)
        registry->last = NULL;
    HASH_DEL(registry->threads, thread);
    call_stack_release(&thread->stack);
    watched_calls_release(&thread->watched);
    inline_paths_release(&thread->paths);
    inline_history_release(&thread->history);
    sync_thread_free(thread->sync);
    free(thread);
}

void registry_rename_thread(struct registry *registry, struct traced_thread *thread, uint32_t tid)
{
    HASH_DEL(registry->threads, thread);
    thread->tid = tid;
    HASH_ADD(hh, registry->threads, tid, sizeof(thread->tid), thread);
}

int64_t registry_stored_parent(const struct traced_process *process)
{
    for (; process->parent; process = process->parent)
        if (process->parent->process_id)
            return process->parent->process_id;
    return process->parent_id;
}

void registry_remove_process(struct registry *registry, struct traced_process *process)
{
    int64_t known_by = process->process_id ? process->process_id : registry_stored_parent(process);

    for (struct traced_process *child = registry->processes; child; child = child->hh.next) {
        if (child->parent == process) {
            child->parent = NULL;
            child->parent_id = known_by;
        }
    }
    HASH_DEL(registry->processes, process);
    goroutine_streams_free(process->goroutines);
    sync_stream_free(process->sync);
    free(process->exe);
    free(process->argv);
    free(process->callers);
    free(process->code);
    free(process);
}

void registry_release(struct registry *registry)
{
    struct traced_process *process, *next_process;
    struct traced_thread *thread, *next_thread;

    HASH_ITER (hh, registry->threads, thread, next_thread)
        registry_remove_thread(registry, thread);
    HASH_ITER (hh, registry->processes, process, next_process)
        registry_remove_process(registry, process);
}
