/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The tracer: a process that shares our memory (collector/ptrace/shared_process.h) and traces the targets by
 * ptrace(2), for users who may load no BPF programs. It tells of forks, execs and exits as wire records (tracer_fd(),
 * tracer_consume()), and holds programs still from their exec until they are let go.
 *
 * The targets notice nothing of it but time: a process or a thread that is made stands still until it has been noted,
 * an exec until it is let go, and a signal until it has been passed on. System calls are not looked at. Stops by SIGSTOP
 * and of job control are stops still. If this process or the tracer is killed, at whatever moment, the kernel lets all
 * of them go: a signal that was on its way arrives, since its stop is looked at, not taken (WNOWAIT).
 *
 * What it cannot see: calls of mprotect() and setuid(), and what the dynamic linker maps. Programs whose files give
 * rights run with these, untraced (file_rights.h): they are reported as WIRE_EXIT with WIRE_UNFOLLOWED.
 */
#ifndef TRACECTL_COLLECTOR_TRACER_TRACER_H
#define TRACECTL_COLLECTOR_TRACER_TRACER_H

#include <stdbool.h>
#include <sys/types.h>

#include "collector/backend/life_cycle_source.h"

struct error;

struct tracer;

/* Starts the process. `follow_children`: processes that targets make are traced as well. -EAGAIN, -ENOMEM,
 * -EMFILE. */
int tracer_new(bool follow_children, struct tracer **ret_tracer, struct error *err);

/* Ends it; the targets run on. Accepts NULL. */
void tracer_free(struct tracer *tracer);

/* The life-cycle source that it is. What it cannot watch (watch_linker and the like) it says 0 to, but for
 * watch_rewrites: -ENOTSUP where there is something to watch. */
struct life_cycle_source *tracer_life_cycle(struct tracer *tracer);

#endif
