/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Seccomp filters of targets: whether they let a thread make the system calls by which it is patched. A session may be
 * killed at any moment, and the thread makes its call and returns from it without one; so only calls are made that the
 * filter allows whatever their arguments are, as the kernel has it (bpf/watched_calls.h). And a thread that is stopped
 * in a call with a timeout continues it by another call: a filter that does not allow that one is harmed by any stop.
 */
#ifndef TRACECTL_COLLECTOR_INLINE_CALL_FILTERS_H
#define TRACECTL_COLLECTOR_INLINE_CALL_FILTERS_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether all threads of the process may make them, or have no filter. Nothing is stopped for it. False as well when it
 * cannot be found out: before Linux 5.11, or without BPF. */
bool call_filters_allow(pid_t pid);

/* The same for one thread, in a session; false if call_filters_allow() was never asked before. */
bool call_filters_allow_thread(pid_t tid);

#endif
