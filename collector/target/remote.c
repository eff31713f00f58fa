/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/target/remote.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "collector/target/process.h"
#include "collector/target/room.h"
#include "collector/target/tracee.h"

#define PATIENCE_NS 1000000000ull /* for all threads to stop */
#define TRIES 64                  /* stops of other kinds that may come between a call and its end */

#ifndef PTRACE_EVENT_STOP
#define PTRACE_EVENT_STOP 128
#endif

struct remote_thread {
    struct tracee tracee;
    bool changed; /* the registers, from what they were when it stopped */
    struct user_regs_struct registers;
};

struct remote {
    pid_t pid;
    int memory; /* /proc/PID/mem */
    struct remote_thread *threads;
    size_t count, capacity;
    uint64_t syscall_instruction;
};

pid_t remote_pid(const struct remote *remote)
{
    return remote->pid;
}

size_t remote_thread_count(const struct remote *remote)
{
    return remote->count;
}

pid_t remote_tid(const struct remote *remote, size_t thread)
{
    return remote->threads[thread].tracee.tid;
}

const struct user_regs_struct *remote_registers(const struct remote *remote, size_t thread)
{
    return &remote->threads[thread].registers;
}

void remote_set_pc(struct remote *remote, size_t thread, uint64_t pc)
{
    remote->threads[thread].registers.rip = pc;
    remote->threads[thread].changed = true;
}

int remote_read(const struct remote *remote, uint64_t address, void *bytes, size_t size)
{
    return pread(remote->memory, bytes, size, (off_t)address) == (ssize_t)size ? 0 : -EIO;
}

int remote_write(const struct remote *remote, uint64_t address, const void *bytes, size_t size)
{
    return pwrite(remote->memory, bytes, size, (off_t)address) == (ssize_t)size ? 0 : -EIO;
}

/* ------------------------------------------------------------------------------------ stopping */

static int get_registers(pid_t tid, struct user_regs_struct *ret_registers)
{
    struct iovec io = {ret_registers, sizeof(*ret_registers)};

    return ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &io) ? -errno : 0;
}

static int set_registers(pid_t tid, const struct user_regs_struct *registers)
{
    struct iovec io = {(void *)registers, sizeof(*registers)};

    return ptrace(PTRACE_SETREGSET, tid, (void *)NT_PRSTATUS, &io) ? -errno : 0;
}

static struct remote_thread *find_thread(struct remote *remote, pid_t tid)
{
    for (size_t i = 0; i < remote->count; i++)
        if (remote->threads[i].tracee.tid == tid)
            return &remote->threads[i];
    return NULL;
}

/* Asks the threads that are not known yet to stop. Returns how many, or a negative errno. */
static int seize_threads(struct remote *remote)
{
    AUTO_FREE pid_t *tids = NULL;
    size_t count;
    int seized = 0, r = process_threads(remote->pid, &tids, &count, NULL);

    for (size_t i = 0; !r && i < count; i++) {
        struct remote_thread thread = {0};
        int stopping;

        if (find_thread(remote, tids[i]))
            continue;
        if (array_reserve(&remote->threads, &remote->capacity, remote->count + 1))
            return -ENOMEM;
        stopping = tracee_stop(tids[i], &thread.tracee);
        if (stopping == -ESRCH)
            continue; /* it has ended meanwhile */
        if (stopping)
            return stopping;
        remote->threads[remote->count++] = thread;
        seized++;
    }
    return r ? r : seized;
}

static void forget_thread(struct remote *remote, size_t thread)
{
    remote->threads[thread] = remote->threads[--remote->count];
}

/* Returns 1 when it has stopped, 0 when not yet, <0 when it is gone. */
static int wait_for_stop(struct remote_thread *thread)
{
    bool before = thread->tracee.stopped;
    int r = tracee_has_stopped(&thread->tracee);

    return r > 0 && !before && get_registers(thread->tracee.tid, &thread->registers) ? -ESRCH : r;
}

static int wait_for_all(struct remote *remote, uint64_t end)
{
    size_t thread = 0;

    while (thread < remote->count) {
        int r = wait_for_stop(&remote->threads[thread]);

        if (r > 0)
            thread++;
        else if (r < 0)
            forget_thread(remote, thread);
        else if (clock_ns(CLOCK_MONOTONIC) >= end)
            return -ETIMEDOUT;
        else
            tracee_pause();
    }
    return 0;
}

/* Threads made meanwhile by threads that had not stopped yet: until a look finds none. */
static int stop_all(struct remote *remote, struct error *err)
{
    uint64_t end = clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS;
    int r;

    do {
        r = seize_threads(remote);
        if (r > 0) {
            int waited = wait_for_all(remote, end);

            r = waited ? waited : r;
        }
    } while (r > 0);
    if (!r && !remote->count)
        r = -ESRCH;
    return r ? error_set(err, r, NULL, "cannot stop process %d", (int)remote->pid) : 0;
}

static void let_go(struct remote_thread *thread)
{
    if (thread->tracee.stopped && thread->changed)
        set_registers(thread->tracee.tid, &thread->registers);
    tracee_let_go(&thread->tracee, thread->changed);
}

/* ------------------------------------------------------------------------------------ calls */

/* A `syscall` instruction: the vDSO falls back to it. */
static int find_syscall_instruction(struct remote *remote, struct error *err)
{
    uint64_t start, end;
    AUTO_FREE uint8_t *code = NULL;
    int r = room_of_vdso(remote->pid, &start, &end, err);

    if (r)
        return r;
    code = malloc(end - start);
    if (!code)
        return error_no_memory(err);
    if (remote_read(remote, start, code, end - start))
        return error_say(err, -EIO, "its vDSO cannot be read");
    for (size_t i = 0; i + 1 < end - start; i++) {
        if (code[i] == 0x0f && code[i + 1] == 0x05) {
            remote->syscall_instruction = start + i;
            return 0;
        }
    }
    return error_say(err, -ENOENT, "its vDSO has no system call");
}

/* Lets the thread make one step. Signals are blocked but for those that cannot be: a SIGSTOP takes effect at
 * once, in the stop that tells of it (only there does the kernel know whether a SIGCONT has followed it). The
 * step is made all the same, and the process stands still again after the session. */
static int step(struct remote *remote, struct remote_thread *thread, struct error *err)
{
    struct user_regs_struct now;
    int status, signal = thread->tracee.signal == SIGSTOP ? SIGSTOP : 0;

    thread->tracee.signal -= signal;
    for (int i = 0; i < TRIES; i++) {
        if (ptrace(PTRACE_SINGLESTEP, thread->tracee.tid, NULL, (void *)(intptr_t)signal))
            break;
        while (waitpid(thread->tracee.tid, &status, __WALL) < 0)
            if (errno != EINTR)
                return error_set(err, -errno, NULL, "process %d is gone", (int)remote->pid);
        if (!WIFSTOPPED(status) || get_registers(thread->tracee.tid, &now))
            break;
        signal = status >> 16 != PTRACE_EVENT_STOP && WSTOPSIG(status) == SIGSTOP ? SIGSTOP : 0;
        if (now.rip == remote->syscall_instruction)
            continue;
        if (signal)
            thread->tracee.signal = signal;
        return 0;
    }
    return error_say(err, -ESRCH, "process %d does not run for us", (int)remote->pid);
}

int remote_call(struct remote *remote, long number, const uint64_t arguments[6], int64_t *ret_result,
                struct error *err)
{
    struct remote_thread *thread = &remote->threads[0];
    struct user_regs_struct call = thread->registers;
    uint64_t blocked, all = ~0ull;
    int r = remote->syscall_instruction ? 0 : find_syscall_instruction(remote, err);

    if (r)
        return r;
    call.rax = (uint64_t)number;
    call.orig_rax = UINT64_MAX; /* no call is to be restarted */
    call.rip = remote->syscall_instruction;
    call.rdi = arguments[0];
    call.rsi = arguments[1];
    call.rdx = arguments[2];
    call.r10 = arguments[3];
    call.r8 = arguments[4];
    call.r9 = arguments[5];
    if (ptrace(PTRACE_GETSIGMASK, thread->tracee.tid, (void *)sizeof(blocked), &blocked) ||
        ptrace(PTRACE_SETSIGMASK, thread->tracee.tid, (void *)sizeof(all), &all))
        return error_set(err, -errno, NULL, "process %d is gone", (int)remote->pid);
    r = set_registers(thread->tracee.tid, &call);
    if (!r)
        r = step(remote, thread, err);
    if (!r)
        r = get_registers(thread->tracee.tid, &call);
    *ret_result = (int64_t)call.rax;
    set_registers(thread->tracee.tid, &thread->registers);
    ptrace(PTRACE_SETSIGMASK, thread->tracee.tid, (void *)sizeof(blocked), &blocked);
    return r;
}

/* ------------------------------------------------------------------------------------ the session */

static int run(struct remote *remote, remote_work work, void *context, struct error *err)
{
    char path[64];
    int r = stop_all(remote, err);

    snprintf(path, sizeof(path), "/proc/%d/mem", (int)remote->pid);
    if (!r) {
        remote->memory = open(path, O_RDWR | O_CLOEXEC);
        r = remote->memory < 0 ? error_set(err, -errno, NULL, "cannot open %s", path)
                               : work(context, remote, err);
    }
    for (size_t i = 0; i < remote->count; i++)
        let_go(&remote->threads[i]);
    return r;
}

/* What the session's process leaves behind. */
struct outcome {
    int code;
    struct error error;
};

static void session_main(pid_t pid, remote_work work, void *context, struct outcome *outcome)
{
    struct remote remote = {.pid = pid, .memory = -1};
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    setsid(); /* what is sent to the collector's group is not for us */
    outcome->code = run(&remote, work, context, &outcome->error);
    _exit(0);
}

int remote_session(pid_t pid, remote_work work, void *context, struct error *err)
{
    struct outcome *outcome =
        mmap(NULL, sizeof(*outcome), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child;
    int r;

    if (outcome == MAP_FAILED)
        return error_no_memory(err);
    outcome->code = error_say(&outcome->error, -ECHILD, "what was to patch process %d was killed", (int)pid);
    child = fork();
    if (!child)
        session_main(pid, work, context, outcome);
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    r = child < 0 ? error_set(err, -errno, NULL, "cannot start a process") : outcome->code;
    if (child > 0 && r && err)
        *err = outcome->error;
    munmap(outcome, sizeof(*outcome));
    return r;
}
