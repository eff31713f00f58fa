/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A process that stands still, by ptrace(2), so that it can be made to call the kernel and its code can be
 * changed. All its threads stop, those that are made meanwhile too, or none of it begins.
 *
 * It all happens in a process of its own (remote_session): when the collector is killed in the middle, the
 * session comes to its end, and the target goes on as if nothing had been. Only a signal meant for that
 * process itself could leave a thread with another's registers.
 *
 * Signals that come meanwhile wait: they are blocked while the thread calls the kernel for us, and one that
 * was about to be delivered when it stopped is delivered when it goes on. A system call that the stop
 * interrupts is made anew, by the kernel or by live_resume_call().
 */
#ifndef TRACECTL_COLLECTOR_TARGET_REMOTE_H
#define TRACECTL_COLLECTOR_TARGET_REMOTE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "base/error.h"

struct remote;

/* Runs `work` on the stopped process `pid`, which goes on afterwards, and returns what it returns, with its
 * error. `work` runs in a child of this process: what it shall leave behind must be in shared memory. It has
 * to be quick. -ESRCH: gone; -EPERM: somebody else traces it; -ETIMEDOUT: a thread does not stop. */
typedef int (*remote_work)(void *context, struct remote *remote, struct error *err);
int remote_session(pid_t pid, remote_work work, void *context, struct error *err);

pid_t remote_pid(const struct remote *remote);

/* The threads of the process. */
size_t remote_thread_count(const struct remote *remote);
pid_t remote_tid(const struct remote *remote, size_t thread);
const struct user_regs_struct *remote_registers(const struct remote *remote, size_t thread);

/* Lets the thread go on at another instruction. */
void remote_set_pc(struct remote *remote, size_t thread, uint64_t pc);

/* Makes the first thread call the kernel; `*ret_result` is what the kernel says, an error below 0. */
int remote_call(struct remote *remote, long number, const uint64_t arguments[6], int64_t *ret_result,
                struct error *err);

/* Memory of the process, whatever its protection. -EIO: not all of it. */
int remote_read(const struct remote *remote, uint64_t address, void *bytes, size_t size);
int remote_write(const struct remote *remote, uint64_t address, const void *bytes, size_t size);

#endif
