/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A small process that outlives a killed collector for a moment, to take its inline probes out of the
 * programs that it had patched. A uprobe goes with its last descriptor; nothing else would remove a patch;
 * none remove it.
 */
#ifndef TRACECTL_COLLECTOR_INLINE_INLINE_GUARD_H
#define TRACECTL_COLLECTOR_INLINE_INLINE_GUARD_H

#include <sys/types.h>

struct error;

#define INLINE_GUARD_MAX 4096 /* processes that it knows of; others wait for the next recording of them */

struct inline_guard {
    pid_t pid;
    int pipe;    /* its other end tells the guard that the collector is gone */
    pid_t *pids; /* shared with the guard: INLINE_GUARD_MAX places, 0: free */
};

int inline_guard_start(struct inline_guard *ret_guard, struct error *err);

/* A process is patched, or is not any more. */
void inline_guard_add(struct inline_guard *guard, pid_t pid);
void inline_guard_remove(struct inline_guard *guard, pid_t pid);

/* Ends the guard in peace. */
void inline_guard_stop(struct inline_guard *guard);

#endif
