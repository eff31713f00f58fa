/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whether numbers of processes mean the same here, to the kernel side and to the processes themselves. */
#ifndef TRACECTL_COLLECTOR_PROCESS_PID_NAMESPACE_H
#define TRACECTL_COLLECTOR_PROCESS_PID_NAMESPACE_H

#include <stdbool.h>
#include <sys/types.h>

struct error;

/* Whether this process and its children are in the initial pid namespace. BPF programs see a process by its
 * number there; in another one, as containers have, this process knows it by another number. */
bool pid_namespace_is_initial(void);

/* -ENOTSUP, and what to do about it, when they are not. */
int pid_namespace_check(struct error *err);

/* Whether numbers of processes mean the same to this one, to those that it makes and in /proc: then other processes of
 * the namespace can be traced by ptrace(2). */
bool pid_namespace_is_whole(void);

/* The id by which thread `tid` knows itself: that of the innermost pid namespace that it is in. 0: it is gone. */
pid_t pid_namespace_innermost(pid_t tid);

#endif
