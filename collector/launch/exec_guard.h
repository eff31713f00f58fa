/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The guard: a small process that outlives a killed collector for a moment, to let go the targets that stand
 * still after exec (see bpf/lifecycle.h); and those of a living one that have stood for ten seconds. It holds
 * the map of those processes and no link, so that it keeps no probe alive.
 */
#ifndef TRACECTL_COLLECTOR_LAUNCH_EXEC_GUARD_H
#define TRACECTL_COLLECTOR_LAUNCH_EXEC_GUARD_H

struct error;

struct exec_guard {
    int pid;
    int pipe; /* its other end tells the guard that the collector is gone */
};

/* Forks the guard, which closes every descriptor but the two it needs. */
int exec_guard_start(int held_map_fd, struct exec_guard *ret_guard, struct error *err);

/* Ends the guard in peace. */
void exec_guard_stop(struct exec_guard *guard);

#endif
