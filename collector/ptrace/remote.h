/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A process that stands still, by ptrace(2), so that it can be made to call the kernel and its code can be
 * changed. All its threads stop, those that are made meanwhile too, or none of it begins.
 *
 * It all happens in a process of its own (remote_session), which may be killed at any instant, or give up:
 * nothing of the target is ever in a state that only the session can take it out of.
 *
 *   - A thread that stands still is let go by the kernel, and nothing is missing (tracee.h).
 *   - The thread that calls the kernel for us has a signal frame in front of it (signal_frame.h) from the
 *     moment at which its registers are no longer its own: with nothing to stop it, it makes the call, and
 *     then restores itself. What a call leaves behind, such as a descriptor, it undoes before
 *     (remote_undo). The frame lies in memory that no thread uses (remote_place.h), and the code is the
 *     C library's.
 *   - A thread is moved by one call of ptrace(2), before the code at its old place changes; code changes page
 *     by page, each at once.
 *
 * Signals that come meanwhile wait: they are blocked while the thread calls the kernel for us, and one that
 * was about to be delivered when it stopped is delivered when it continues. A system call that the stop
 * interrupts is made anew, by the kernel or by live_resume_call(). Where the session is killed in the middle
 * of a call of that very thread's, a timeout of the system call that was interrupted begins anew.
 */
#ifndef TRACECTL_COLLECTOR_PTRACE_REMOTE_H
#define TRACECTL_COLLECTOR_PTRACE_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

struct error;
struct tracee;

struct remote;

/* Runs `work` on the stopped process `pid`, which continues afterwards, and returns what it returns, with its
 * error. `work` runs in a child of this process: what it shall leave behind must be in shared memory. It has
 * to be quick: after some seconds it is killed, and earlier when this process gets a signal meanwhile.
 * -ESRCH: gone; -EPERM: another process traces it; -ETIMEDOUT: a thread does not stop, or the whole took too
 * long; -ECHILD: the session was killed. */
typedef int (*remote_work)(void *context, struct remote *remote, struct error *err);
int remote_session(pid_t pid, remote_work work, void *context, struct error *err);

/* A process that shares the memory of this one (shared_process.h) and traces others already, so that no session of
 * its own could: sessions of those take place there. */
struct remote_tracer {
    pid_t maker, pid;
    /* Runs `work` in the tracing process while all threads of `pid` stand still there, and returns what it
     * returns. -ENOENT: it does not trace the process; -ETIMEDOUT: a thread does not stop; -ESRCH. */
    int (*with_stopped)(struct remote_tracer *tracer, pid_t pid,
                        int (*work)(void *context, struct tracee *threads, size_t count), void *context);
};

/* One at a time; NULL: there is none any more. */
void remote_trace_by(struct remote_tracer *tracer);

/* The process that traces for this one; 0: none does. */
pid_t remote_tracer_pid(void);

/* How sessions find out whether a thread with a seccomp filter may make any of their calls; NULL: none may. */
void remote_filtered_by(bool (*allows)(pid_t tid));

pid_t remote_pid(const struct remote *remote);

/* The threads of the process. */
size_t remote_thread_count(const struct remote *remote);
pid_t remote_tid(const struct remote *remote, size_t thread);
const struct user_regs_struct *remote_registers(const struct remote *remote, size_t thread);

/* Lets the thread continue at another instruction; at once, should this process be killed. -ESRCH. */
int remote_set_pc(struct remote *remote, size_t thread, uint64_t pc);

/* Makes a thread call the kernel; `*ret_result` is what the kernel says, an error below 0. -ENOTSUP: it has
 * no thread that could (32-bit code, seccomp, a shadow stack, no memory to prepare it in); -ETIMEDOUT: it
 * does not run (its control group is frozen), or the call took too long. No further calls are tried then. */
int remote_call(struct remote *remote, long number, const uint64_t arguments[6], int64_t *ret_result,
                struct error *err);

/* Has the thread make this call as well if it must restore itself, before the ones that were told of earlier.
 * Its result does not matter. -ENOSPC: there are REMOTE_UNDO_MOST already. Errors of remote_call(). */
#define REMOTE_UNDO_MOST 7
int remote_undo(struct remote *remote, long number, const uint64_t arguments[6], struct error *err);

/* The last one that was told of is not needed any more. */
void remote_undo_drop(struct remote *remote);

/* The thread that makes the calls, and memory that they may use, of REMOTE_SCRATCH_BYTES. Errors of
 * remote_call(). */
#define REMOTE_SCRATCH_BYTES 1024
int remote_caller(struct remote *remote, pid_t *ret_tid, uint64_t *ret_scratch, struct error *err);

/* Memory of the process, whatever its protection. -EIO: not all of it. */
int remote_read(const struct remote *remote, uint64_t address, void *bytes, size_t size);
int remote_write(const struct remote *remote, uint64_t address, const void *bytes, size_t size);

#endif
