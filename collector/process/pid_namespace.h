/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whether numbers of processes mean the same here and to the kernel side. */
#ifndef TRACECTL_COLLECTOR_PROCESS_PID_NAMESPACE_H
#define TRACECTL_COLLECTOR_PROCESS_PID_NAMESPACE_H

#include <stdbool.h>

struct error;

/* Whether this process and its children are in the initial pid namespace. BPF programs see a process by its
 * number there; in another one, as containers have, this process knows it by another number. */
bool pid_namespace_is_initial(void);

/* -ENOTSUP, and what to do about it, when they are not. */
int pid_namespace_check(struct error *err);

/* Whether numbers of processes mean the same to this one, to those that it makes and in /proc: then other processes of
 * the namespace can be traced by ptrace(2). */
bool pid_namespace_is_whole(void);

#endif
