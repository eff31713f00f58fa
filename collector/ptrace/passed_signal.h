/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A signal that a traced thread is about to get, and that its tracer passes on. */
#ifndef TRACECTL_COLLECTOR_PTRACE_PASSED_SIGNAL_H
#define TRACECTL_COLLECTOR_PTRACE_PASSED_SIGNAL_H

#include <sys/types.h>

/* Lets the thread, which stands in a signal-delivery-stop of the calling thread, continue with the signal. Untraced, a
 * thread that sleeps in a system call is not woken by a signal that is ignored: nor is it here. */
void passed_signal_go_on(pid_t tid, int number);

#endif
