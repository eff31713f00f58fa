/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/ptrace/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "collector/process/frozen.h"
#include "collector/process/process.h"
#include "collector/ptrace/remote_state.h"

#define PATIENCE_NS 1000000000ull        /* for all threads to stop */
#define OTHERS_PATIENCE_NS 3000000000ull /* for another recorder to let the process go */
#define SESSION_NS 10000000000ull        /* for all of a session */
#define INTERRUPTED_NS 2000000000ull     /* for the rest of it after a signal to this process */
#define KILLED_MS 500                    /* for a session that has been killed */

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

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

int remote_set_pc(struct remote *remote, size_t thread, uint64_t pc)
{
    struct remote_thread *moved = &remote->threads[thread];

    if (moved == remote->caller.thread)
        remote_unpark(remote);
    if (!moved->tracee.stopped)
        return -ESRCH;
    registers_set_pc(&moved->registers, pc);
    return remote_set_registers(moved->tracee.tid, &moved->registers);
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
        if (stopping == -ESRCH || (stopping == -EPERM && thread_has_ended(tids[i])))
            continue;
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

    return r > 0 && !before && remote_get_registers(thread->tracee.tid, &thread->registers) ? -ESRCH : r;
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

/* Seizes the threads that are not seized yet. Another recorder may have them for a moment, as the one has that takes out
 * the probes of a recorder that was killed: that is waited for, a little only where some stand still already. */
static int seize_free_threads(struct remote *remote, uint64_t begun)
{
    int r;

    while ((r = seize_threads(remote)) == -EPERM) {
        if (clock_ns(CLOCK_MONOTONIC) - begun >= (remote->count ? PATIENCE_NS : OTHERS_PATIENCE_NS))
            break;
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    return r;
}

/* Threads made meanwhile by threads that had not stopped yet: until a look finds none. */
static int stop_all(struct remote *remote, struct error *err)
{
    uint64_t begun = clock_ns(CLOCK_MONOTONIC), end = 0;
    int r;

    do {
        r = seize_free_threads(remote, begun);
        end = end ? end : clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS;
        if (r > 0) {
            int waited = wait_for_all(remote, end);

            r = waited ? waited : r;
        }
    } while (r > 0);
    if (!r && !remote->count)
        r = -ESRCH;
    if (r == -ETIMEDOUT && process_is_frozen(remote->pid))
        return error_say(err, r, "the control group of process %d is frozen", (int)remote->pid);
    return r ? error_set(err, r, NULL, "cannot stop process %d", (int)remote->pid) : 0;
}

/* ------------------------------------------------------------------------------------ the session */

static int open_memory(struct remote *remote, struct error *err)
{
    remote->memory = process_memory_open(remote->pid, O_RDWR);
    return remote->memory < 0 ? error_set(err, remote->memory, NULL, "cannot open the memory of process %d",
                                          (int)remote->pid)
                              : 0;
}

static int run(struct remote *remote, remote_work work, void *context, struct error *err)
{
    int r = stop_all(remote, err);

    if (!r)
        r = open_memory(remote, err);
    if (!r)
        r = work(context, remote, err);
    remote_unpark(remote);
    for (size_t i = 0; i < remote->count; i++)
        tracee_let_go(&remote->threads[i].tracee);
    return r;
}

/* What the session's process leaves behind. */
struct outcome {
    int code;
    struct error error;
};

static void session_main(struct remote *remote, pid_t parent, remote_work work, void *context,
                         struct outcome *outcome)
{
    sigset_t all;

    prctl(PR_SET_PDEATHSIG, SIGKILL); /* what is left to do is the guard's then */
    if (getppid() != parent)
        _exit(0);
    signal(SIGCHLD, SIG_DFL);
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    setsid(); /* what is sent to the collector's group is not for us */
    outcome->code = run(remote, work, context, &outcome->error);
    _exit(0);
}

/* Waits for the session's end, or brings it about. Returns 0, or -ETIMEDOUT. */
static int wait_for_session(pid_t child)
{
    AUTO_CLOSE int process = (int)syscall(SYS_pidfd_open, child, 0);
    struct pollfd end = {.fd = process, .events = POLLIN};
    uint64_t limit = clock_ns(CLOCK_MONOTONIC) + SESSION_NS, now;
    int r;

    if (process < 0)
        return waitpid(child, NULL, 0) == child ? 0 : -errno;
    while ((now = clock_ns(CLOCK_MONOTONIC)) < limit) {
        r = poll(&end, 1, (int)((limit - now) / 1000000) + 1);
        if (r > 0)
            return waitpid(child, NULL, 0) == child ? 0 : -errno;
        if (r < 0 && limit > clock_ns(CLOCK_MONOTONIC) + INTERRUPTED_NS)
            limit = clock_ns(CLOCK_MONOTONIC) + INTERRUPTED_NS;
    }
    kill(child, SIGKILL);
    if (poll(&end, 1, KILLED_MS) > 0) /* else it is in the kernel, and left behind */
        waitpid(child, NULL, 0);
    return -ETIMEDOUT;
}

static int session_apart(pid_t pid, remote_work work, void *context, struct error *err)
{
    struct outcome *outcome =
        mmap(NULL, sizeof(*outcome), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct remote remote = {.pid = pid, .memory = -1};
    struct error why = {0};
    pid_t child, parent = getpid();
    int r;

    if (outcome == MAP_FAILED)
        return error_no_memory(err);
    outcome->code =
        error_say(&outcome->error, -ECHILD, "the helper that patches process %d was killed", (int)pid);
    child = fork();
    if (!child)
        session_main(&remote, parent, work, context, outcome);
    if (child < 0)
        r = error_set(&why, -errno, NULL, "cannot start a process");
    else if (wait_for_session(child))
        r = error_say(&why, -ETIMEDOUT, "process %d does not answer reads of its memory", (int)pid);
    else {
        r = outcome->code;
        why = outcome->error;
    }
    if (r && err)
        *err = why;
    munmap(outcome, sizeof(*outcome));
    return r;
}

/* ------------------------------------------------------------------------------------ by another tracer */

static struct remote_tracer *current_tracer;

void remote_trace_by(struct remote_tracer *tracer)
{
    current_tracer = tracer;
}

pid_t remote_tracer_pid(void)
{
    return current_tracer && current_tracer->maker == getpid() ? current_tracer->pid : 0;
}

struct visit {
    pid_t pid;
    remote_work work;
    void *context;
    bool begun;
    struct error why;
};

static int run_visit(struct visit *visit, struct remote *remote)
{
    int r = open_memory(remote, &visit->why);

    if (r)
        return r;
    r = visit->work(visit->context, remote, &visit->why);
    remote_unpark(remote);
    close(remote->memory);
    return r;
}

/* In the tracing process. What stood still and is gone by now is not told of. */
static int visit_stopped(void *context, struct tracee *threads, size_t count)
{
    struct visit *visit = context;
    struct remote remote = {.pid = visit->pid, .memory = -1};
    int r;

    visit->begun = true;
    remote.threads = calloc(count + 1, sizeof(*remote.threads));
    if (!remote.threads)
        return error_no_memory(&visit->why);
    for (size_t i = 0; i < count; i++) {
        struct remote_thread *thread = &remote.threads[remote.count];

        *thread = (struct remote_thread){.tracee = threads[i]};
        remote.count += !remote_get_registers(threads[i].tid, &thread->registers);
    }
    r = remote.count ? run_visit(visit, &remote)
                     : error_set(&visit->why, -ESRCH, NULL, "cannot stop process %d", (int)visit->pid);
    for (size_t i = 0, at = 0; i < count && at < remote.count; i++)
        if (threads[i].tid == remote.threads[at].tracee.tid)
            threads[i] = remote.threads[at++].tracee;
    free(remote.threads);
    return r;
}

/* Returns false when it is traced by nobody of ours. */
static bool visit_traced(pid_t pid, remote_work work, void *context, int *ret_result, struct error *err)
{
    struct visit visit = {.pid = pid, .work = work, .context = context};
    int r = remote_tracer_pid() ? current_tracer->with_stopped(current_tracer, pid, visit_stopped, &visit)
                                : -ENOENT;

    *ret_result = r;
    if (r == -ENOENT && !visit.begun)
        return false;
    if (r < 0 && !visit.why.code)
        error_set(&visit.why, r, NULL, "cannot stop process %d", (int)pid);
    if (r && err)
        *err = visit.why;
    return true;
}

/* ------------------------------------------------------------------------------------ either way */

int remote_session(pid_t pid, remote_work work, void *context, struct error *err)
{
    int r;

    if (!process_is_running(pid)) /* a short-lived one may be gone by the time that its birth is read */
        return error_set(err, -ESRCH, NULL, "process %d has ended", (int)pid);
    return visit_traced(pid, work, context, &r, err) ? r : session_apart(pid, work, context, err);
}
