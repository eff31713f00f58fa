/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stops threads that run, for milliseconds, and lets them go again.
 *
 * By ptrace(2), from a thread made for it: whatever happens, the kernel lets every stopped thread go when
 * that thread ends, and it ends with the process (SIGKILL included) or with live_stop_end. PTRACE_SEIZE and
 * PTRACE_INTERRUPT send no signal; a signal that arrives for a thread just then is handed on to it.
 *
 * What is not stopped: threads that another process traces (a debugger), that are gone, that belong to this
 * process, or that do not stop in time (waiting for a disk, say).
 *
 * A thread that was about to sleep in the kernel when it was interrupted would see that: the call restarts by
 * itself, but epoll_wait, semop and the few others of signal(7) that never restart would return EINTR to a
 * program that may not expect it. Such a thread is set back to the call's own instruction, and makes it anew.
 */
#ifndef TRACECTL_COLLECTOR_STACKS_LIVE_STOP_H
#define TRACECTL_COLLECTOR_STACKS_LIVE_STOP_H

#include <stddef.h>
#include <sys/types.h>

struct error;

struct live_stop;

int live_stop_start(struct live_stop **ret_stop, struct error *err);

/* Stops these threads as well, but for those that it has been asked to stop before; returns how many more
 * stand still now. One that does not stop in time may do so later. -ENOMEM: none of them was touched. */
ssize_t live_stop_threads(struct live_stop *stop, const pid_t *tids, size_t count);

/* Lets all go. Accepts NULL. */
void live_stop_end(struct live_stop *stop);

#endif
