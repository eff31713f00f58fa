/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Every request to a stopped thread may fail with ESRCH, since SIGKILL ends it at any moment, stopped or not: its end is
 * reported by wait(2) like any other, and that is where it is dealt with. So results of requests are not looked at.
 *
 * Stops are looked at first. Those for a signal are never taken: the signal would be lost if the tracer were killed
 * before the thread continues. All others mean nothing to the thread, and are.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "collector/process/process.h"
#include "collector/ptrace/passed_signal.h"
#include "collector/tracer/file_rights.h"
#include "collector/tracer/stop_kind.h"
#include "collector/tracer/tracer_state.h"

/* Not PTRACE_O_EXITKILL: the targets shall outlive the tracer. */
#define OPTIONS \
    (PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | \
     PTRACE_O_TRACEVFORKDONE | PTRACE_O_TRACEEXEC)

#define HELD_NS_MAX 10000000000ull

/* ------------------------------------------------------------------------------------ going on */

void tracer_go_on(struct traced_thread *thread)
{
    if (thread->held || thread->process->stopping)
        return;
    thread->parked = false;
    ptrace(thread->grouped ? PTRACE_LISTEN : PTRACE_CONT, thread->tid, NULL, NULL);
}

static void take(pid_t tid)
{
    int status;

    waitpid(tid, &status, __WALL | WNOHANG);
}

size_t tracer_release(struct tracer *tracer, struct traced_process *process)
{
    struct traced_thread *thread = NULL, *next = NULL;
    bool left = process->left;
    size_t count = 0;

    HASH_ITER (hh, tracer->threads, thread, next) {
        if (thread->process != process || !thread->held)
            continue;
        thread->held = false;
        count++;
        if (!left) {
            tracer_go_on(thread);
            continue;
        }
        ptrace(PTRACE_DETACH, thread->tid, NULL, NULL);
        tracer_remove_thread(tracer, thread);
    }
    return count;
}

void tracer_release_overdue(struct tracer *tracer, uint64_t now)
{
    struct traced_thread *thread = NULL, *next = NULL;

    HASH_ITER (hh, tracer->threads, thread, next)
        if (thread->held && now - thread->since_ns > HELD_NS_MAX) {
            thread->held = false;
            tracer_go_on(thread);
        }
}

/* ------------------------------------------------------------------------------------ ends and execs */

static void put_exit(struct tracer *tracer, const struct traced_thread *thread, int status, const char *name,
                     unsigned flags)
{
    struct wire_exit record = {
        .header = {.kind = WIRE_EXIT, .tid = (uint32_t)thread->tid, .ns = clock_ns(CLOCK_MONOTONIC)},
        .tgid = (uint32_t)thread->process->pid,
        .exit_code = (uint32_t)status,
    };

    record.header.flags = (uint8_t)(flags | (thread->process->threads == 1 ? WIRE_LAST_THREAD : 0));
    memcpy(record.comm, name, strnlen(name, sizeof(record.comm) - 1));
    record_queue_put(&tracer->queue, &record, sizeof(record));
}

/* The name that a thread has, or had when it ended. */
static void read_name(pid_t tid, char ret_name[16])
{
    char path[64];
    ssize_t length;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", (int)tid, (int)tid);
    AUTO_CLOSE int file = open(path, O_RDONLY | O_CLOEXEC);
    length = file < 0 ? 0 : read(file, ret_name, 15);
    ret_name[length > 0 ? length : 0] = '\0';
    ret_name[strcspn(ret_name, "\n")] = '\0';
}

static void on_end(struct tracer *tracer, pid_t tid)
{
    struct traced_thread *thread = tracer_find_thread(tracer, tid);
    char name[16] = "";
    int status = 0;

    read_name(tid, name); /* it is there until it is waited for */
    if (waitpid(tid, &status, __WALL | WNOHANG) != tid || !thread)
        return;
    if (thread->process->lent.parent && thread->process->threads == 1)
        tracer_end_lending(tracer, thread->process);
    if (!thread->process->left)
        put_exit(tracer, thread, status, name, 0);
    tracer_remove_thread(tracer, thread);
}

/* It stands where something was reported: a process that is to stand still does on its way back to the program, where a
 * system call can be made in its place. It runs no instruction of its own. */
static void stop_again(struct traced_thread *thread)
{
    if (!thread->process->stopping)
        return;
    thread->parked = false;
    ptrace(PTRACE_INTERRUPT, thread->tid, NULL, NULL);
    ptrace(PTRACE_CONT, thread->tid, NULL, NULL);
}

/* All other threads of the process are gone, the main one too if another one has called exec. */
static void end_others(struct tracer *tracer, struct traced_process *process, pid_t caller)
{
    struct traced_thread *thread = NULL, *next = NULL;

    HASH_ITER (hh, tracer->threads, thread, next) {
        if (thread->process != process || thread->tid == caller)
            continue;
        put_exit(tracer, thread, 0, "", 0);
        tracer_remove_thread(tracer, thread);
    }
}

/* On its way to a program that has not got the rights of its file, because it is traced: the process stops once
 * more, where it can be given registers. Until then it runs nothing of its own. */
static bool begin_to_regain(struct traced_thread *thread)
{
    struct user_regs_struct registers, *kept;

    if (!file_rights_are_missed(thread->tid, &registers) || !(kept = malloc(sizeof(*kept))))
        return false;
    *kept = registers;
    thread->process->regains = kept;
    thread->parked = false;
    ptrace(PTRACE_INTERRUPT, thread->tid, NULL, NULL);
    ptrace(PTRACE_CONT, thread->tid, NULL, NULL);
    return true;
}

/* If the tracer is killed before or behind any of these, the program runs: with its rights if it has the registers. */
static void regain(struct tracer *tracer, struct traced_thread *thread)
{
    char name[16] = "";

    read_name(thread->tid, name);
    if (!ptrace(PTRACE_SETREGS, thread->tid, NULL, thread->process->regains))
        put_exit(tracer, thread, 0, name, WIRE_UNFOLLOWED);
    ptrace(PTRACE_DETACH, thread->tid, NULL, NULL);
    tracer_remove_thread(tracer, thread);
}

static void on_exec(struct tracer *tracer, pid_t tid)
{
    struct traced_process *process = tracer_find_process(tracer, tid);
    struct wire_exec record = {
        .header = {.kind = WIRE_EXEC, .tid = (uint32_t)tid, .ns = clock_ns(CLOCK_MONOTONIC)}};
    struct traced_thread *caller, *thread;
    unsigned long former = (unsigned long)tid;

    take(tid);
    ptrace(PTRACE_GETEVENTMSG, tid, NULL, &former);
    caller = tracer_find_thread(tracer, (pid_t)former);
    if (!process || !caller) {
        ptrace(PTRACE_CONT, tid, NULL, NULL);
        return;
    }
    tracer_end_lending(tracer, process);
    if (process->left) { /* it was traced for its parent's slots alone */
        ptrace(PTRACE_DETACH, tid, NULL, NULL);
        tracer_remove_thread(tracer, caller);
        return;
    }
    end_others(tracer, process, caller->tid);
    thread = caller;
    if (caller->tid != tid) { /* it has the process's number now */
        thread = tracer_add_thread(tracer, process, tid);
        if (!thread)
            thread = caller;
        else
            tracer_remove_thread(tracer, caller);
    }
    if (begin_to_regain(thread))
        return;
    pthread_mutex_lock(&tracer->table);
    process->state =
        (struct process_state){.flags = PROCESS_TRACED | PROCESS_STARTING, .worker = process->state.worker};
    pthread_mutex_unlock(&tracer->table);
    thread->parked = true;
    thread->held = tracer->phase == PHASE_RECORDING;
    thread->since_ns = record.header.ns;
    record.header.flags = thread->held ? WIRE_HELD : 0;
    record.old_tid = (uint32_t)former;
    record_queue_put(&tracer->queue, &record, sizeof(record));
    tracer_go_on(thread);
    stop_again(thread);
}

/* ------------------------------------------------------------------------------------ stops */

/* A new thread whose maker has not told of it yet stays as it is; it is found in the list then. */
static void on_unknown(struct tracer *tracer, pid_t tid)
{
    struct early_stop *early = malloc(sizeof(*early));

    take(tid);
    if (!early) {
        ptrace(PTRACE_DETACH, tid, NULL, NULL);
        return;
    }
    *early = (struct early_stop){.tid = tid, .next = tracer->early};
    tracer->early = early;
}

/* Its process is to stand still: it will, once it has got the signal. */
static void interrupt_if_wanted(const struct traced_thread *thread)
{
    if (thread->process->stopping || thread->process->regains)
        ptrace(PTRACE_INTERRUPT, thread->tid, NULL, NULL);
}

/* A stop that only says what has happened. */
static void on_event(struct tracer *tracer, struct traced_thread *thread, enum stop_kind kind, int status)
{
    take(thread->tid);
    if (kind == STOP_BIRTH)
        tracer_on_birth(tracer, thread, status >> 8);
    if (kind == STOP_VFORK_DONE)
        tracer_on_vfork_done(tracer, thread);
    interrupt_if_wanted(thread);
    ptrace(PTRACE_CONT, thread->tid, NULL, NULL);
}

static void on_stop(struct tracer *tracer, pid_t tid, int status)
{
    enum stop_kind kind = stop_kind_of(status);
    struct traced_thread *thread = kind == STOP_EXEC ? NULL : tracer_find_thread(tracer, tid);

    if (kind == STOP_EXEC) {
        on_exec(tracer, tid);
    } else if (!thread) {
        on_unknown(tracer, tid);
    } else if (kind == STOP_SIGNAL) {
        interrupt_if_wanted(thread);
        passed_signal_go_on(tid, status);
    } else if (kind == STOP_TRAP || kind == STOP_GROUP) {
        take(tid);
        if (thread->process->regains) {
            regain(tracer, thread);
            return;
        }
        thread->parked = true;
        thread->grouped = kind == STOP_GROUP;
        tracer_go_on(thread);
    } else {
        on_event(tracer, thread, kind, status);
    }
}

bool tracer_handle_one(struct tracer *tracer)
{
    siginfo_t what = {0};

    if (waitid(P_ALL, 0, &what, WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WALL) || !what.si_pid)
        return false;
    if (what.si_code == CLD_TRAPPED || what.si_code == CLD_STOPPED)
        on_stop(tracer, what.si_pid, what.si_status);
    else
        on_end(tracer, what.si_pid);
    return true;
}

/* ------------------------------------------------------------------------------------ seizing */

/* Seizes the threads that are not traced yet. Returns how many, or a negative errno when none was to be had. */
static int seize_threads(struct tracer *tracer, struct traced_process *process)
{
    AUTO_FREE pid_t *tids = NULL;
    size_t count = 0;
    int seized = 0, reason = 0, r = process_threads(process->pid, &tids, &count, NULL);

    for (size_t i = 0; !r && i < count; i++) {
        if (tracer_find_thread(tracer, tids[i]))
            continue;
        if (ptrace(PTRACE_SEIZE, tids[i], NULL, (void *)(intptr_t)OPTIONS))
            reason = reason ? reason : -errno;
        else if (!tracer_add_thread(tracer, process, tids[i]))
            r = -ENOMEM;
        else
            seized++;
    }
    return r ? r : seized || process->threads ? seized : reason;
}

int tracer_seize(struct tracer *tracer, struct traced_process *process)
{
    int r;

    do /* threads made meanwhile by threads not yet seized: until a look finds none */
        r = seize_threads(tracer, process);
    while (r > 0);
    return r;
}
