/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Asks Go's runtime to preempt a goroutine whose thread is stopped. */
#ifndef TRACECTL_COLLECTOR_PTRACE_GO_PREEMPT_H
#define TRACECTL_COLLECTOR_PTRACE_GO_PREEMPT_H

#include "collector/ptrace/thread_holder.h"

/* Thread `tid` of a Go process is in a signal-delivery-stop (ptrace(2)) of the calling thread, for SIGURG.
 * Sets what runtime.preemptone sets, and makes the signal look as if runtime.preemptM had sent it. Returns 0
 * or a negative errno, and then nothing has changed but, maybe, g.preempt. */
int go_preempt_request(pid_t tid, const struct thread_holder_preemption *where);

#endif
