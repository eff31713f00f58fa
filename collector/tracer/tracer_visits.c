/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Work on a process that stands still: in the tracing process, since no other one may ask anything of its tracees. */
#include <errno.h>
#include <stdlib.h>
#include <sys/ptrace.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "collector/process/live_resume.h"
#include "collector/process/process.h"
#include "collector/process/tracee.h"
#include "collector/tracer/tracer_state.h"

#define PATIENCE_NS 1000000000ull /* for all threads to stop */

struct tracer_visit {
    pid_t pid;
    int (*work)(void *context, struct tracee *threads, size_t count);
    void *context;
};

/* Whether it is a first thread that has ended before the others, with which its end is reported. */
static bool has_ended(const struct traced_thread *thread)
{
    return thread->tid == thread->process->pid && thread_has_ended(thread->tid);
}

/* Every thread of the process that has not ended, if all of them stand still. Returns how many; 0: one does not. */
static size_t list_parked(struct tracer *tracer, const struct traced_process *process,
                          struct traced_thread **ret_threads)
{
    struct traced_thread *thread = NULL, *next = NULL;
    size_t count = 0;

    HASH_ITER (hh, tracer->threads, thread, next) {
        if (thread->process != process)
            continue;
        if (thread->parked)
            ret_threads[count++] = thread;
        else if (!has_ended(thread))
            return 0;
    }
    return count;
}

/* Those that stand where something was reported go as far as to their way back to the program, where a system call can
 * be made in their place: none runs an instruction of its own. */
static void interrupt_all(struct tracer *tracer, const struct traced_process *process)
{
    struct traced_thread *thread = NULL, *next = NULL;

    HASH_ITER (hh, tracer->threads, thread, next) {
        if (thread->process != process)
            continue;
        ptrace(PTRACE_INTERRUPT, thread->tid, NULL, NULL);
        if (thread->parked)
            ptrace(PTRACE_CONT, thread->tid, NULL, NULL);
        thread->parked = false;
    }
}

/* 0; -ESRCH: it has ended; -ETIMEDOUT. */
static int stop_all(struct tracer *tracer, pid_t pid)
{
    uint64_t end = clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS;
    struct traced_process *process;
    bool parked;

    do {
        struct traced_thread *thread = NULL, *next = NULL;

        process = tracer_find_process(tracer, pid);
        parked = true;
        HASH_ITER (hh, tracer->threads, thread, next)
            parked &= thread->process != process || thread->parked || has_ended(thread);
        if (!process)
            return -ESRCH;
        if (parked)
            return 0;
        if (!tracer_handle_one(tracer))
            tracee_pause();
    } while (clock_ns(CLOCK_MONOTONIC) < end);
    return -ETIMEDOUT;
}

static int visit_threads(struct tracer *tracer, const struct tracer_visit *visit,
                         struct traced_process *process)
{
    AUTO_FREE struct traced_thread **threads = calloc(process->threads + 1, sizeof(struct traced_thread *));
    AUTO_FREE struct tracee *tracees = calloc(process->threads + 1, sizeof(*tracees));
    size_t count;
    int r;

    if (!threads || !tracees)
        return -ENOMEM;
    count = list_parked(tracer, process, threads);
    for (size_t i = 0; i < count; i++) {
        tracees[i] = (struct tracee){.tid = threads[i]->tid, .stopped = true, .stop = TRACEE_EVENT};
        tracees[i].anew = live_resume_call(tracees[i].tid, &tracees[i].interrupted);
    }
    r = visit->work(visit->context, tracees, count);
    for (size_t i = 0; i < count; i++) {
        if (tracees[i].stopped && tracees[i].anew)
            live_resume_undo(tracees[i].tid, &tracees[i].interrupted);
        /* Otherwise it is looked at again like any other that has stopped. */
        threads[i]->parked = tracees[i].stopped && tracees[i].stop == TRACEE_EVENT;
    }
    return r;
}

/* Those that are not to stay continue; where the process is stopped, or a call was made in its place, the kernel
 * says anew how the thread stands. */
static void let_go(struct tracer *tracer, const struct traced_process *process)
{
    struct traced_thread *thread = NULL, *next = NULL;

    HASH_ITER (hh, tracer->threads, thread, next) {
        if (thread->process != process || !thread->parked || thread->held)
            continue;
        if (thread->grouped)
            ptrace(PTRACE_INTERRUPT, thread->tid, NULL, NULL);
        ptrace(PTRACE_CONT, thread->tid, NULL, NULL);
        thread->parked = thread->grouped = false;
    }
}

static int visit(struct tracer *tracer, void *argument)
{
    const struct tracer_visit *visit = argument;
    struct traced_process *process = tracer_find_process(tracer, visit->pid);
    int r;

    if (!process || process->left)
        return -ENOENT;
    process->stopping = true;
    interrupt_all(tracer, process);
    r = stop_all(tracer, visit->pid);
    process = tracer_find_process(tracer, visit->pid);
    if (!process)
        return -ESRCH;
    if (!r)
        r = visit_threads(tracer, visit, process);
    process->stopping = false;
    let_go(tracer, process);
    return r;
}

int tracer_with_stopped(struct remote_tracer *visits, pid_t pid,
                        int (*work)(void *context, struct tracee *threads, size_t count), void *context)
{
    struct tracer *tracer = (struct tracer *)((char *)visits - offsetof(struct tracer, visits));
    struct tracer_visit order = {.pid = pid, .work = work, .context = context};

    return tracer_ask(tracer, visit, &order);
}
