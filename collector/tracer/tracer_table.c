/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The processes and threads that are traced. */
#include "collector/tracer/tracer_state.h"

#include <stdlib.h>

struct traced_process *tracer_find_process(const struct tracer *tracer, pid_t pid)
{
    struct traced_process *process;

    HASH_FIND(hh, tracer->processes, &pid, sizeof(pid), process);
    return process;
}

struct traced_thread *tracer_find_thread(const struct tracer *tracer, pid_t tid)
{
    struct traced_thread *thread;

    HASH_FIND(hh, tracer->threads, &tid, sizeof(tid), thread);
    return thread;
}

struct traced_process *tracer_add_process(struct tracer *tracer, pid_t pid)
{
    struct traced_process *process = tracer_find_process(tracer, pid);

    if (process)
        return process;
    process = calloc(1, sizeof(*process));
    if (!process)
        return NULL;
    process->pid = pid;
    process->state.flags = PROCESS_TRACED;
    pthread_mutex_lock(&tracer->table);
    HASH_ADD(hh, tracer->processes, pid, sizeof(process->pid), process);
    pthread_mutex_unlock(&tracer->table);
    return process;
}

struct traced_thread *tracer_add_thread(struct tracer *tracer, struct traced_process *process, pid_t tid)
{
    struct traced_thread *thread = tracer_find_thread(tracer, tid);

    if (thread)
        return thread;
    thread = calloc(1, sizeof(*thread));
    if (!thread)
        return NULL;
    thread->tid = tid;
    thread->process = process;
    process->threads++;
    HASH_ADD(hh, tracer->threads, tid, sizeof(thread->tid), thread);
    return thread;
}

void tracer_forget_process(struct tracer *tracer, struct traced_process *process)
{
    pthread_mutex_lock(&tracer->table);
    HASH_DEL(tracer->processes, process);
    pthread_mutex_unlock(&tracer->table);
    free(process->regains);
    free(process);
}

void tracer_remove_thread(struct tracer *tracer, struct traced_thread *thread)
{
    struct traced_process *process = thread->process;

    HASH_DEL(tracer->threads, thread);
    free(thread);
    if (!--process->threads)
        tracer_forget_process(tracer, process);
}

void tracer_free_table(struct tracer *tracer)
{
    struct traced_thread *thread = NULL, *next = NULL;
    struct traced_process *process = NULL, *following = NULL;

    HASH_ITER (hh, tracer->threads, thread, next)
        tracer_remove_thread(tracer, thread);
    HASH_ITER (hh, tracer->processes, process, following) /* that never had a thread */
        tracer_forget_process(tracer, process);
    while (tracer->early) {
        struct early_stop *early = tracer->early;

        tracer->early = early->next;
        free(early);
    }
}
