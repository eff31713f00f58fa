/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Closes descriptors in threads of its own. The last close of a link takes its probes away at once and then
 * waits for the whole machine, for seconds when that is busy: others must not wait for that with their probes
 * still in place.
 */
#ifndef TRACECTL_COLLECTOR_UPROBE_CLOSER_H
#define TRACECTL_COLLECTOR_UPROBE_CLOSER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#define CLOSER_THREADS 16

/* All zero is a closer that has nothing to do yet. */
struct closer {
    pthread_t threads[CLOSER_THREADS];
    unsigned count;   /* of threads */
    int pipe[2];      /* descriptors go through it by number */
    unsigned pending; /* atomic */
};

/* Closes `fd` soon; at once where no thread can be had. */
void closer_close(struct closer *closer, int fd);

/* Closes a descriptor right here, and makes it -1 before that: a process that is killed meanwhile has closed
 * it, and it is not closed twice. Below 0: does nothing. */
void closer_close_once(int *fd);

/* So many are not closed yet. */
unsigned closer_pending(const struct closer *closer);

/* Waits until all are closed. */
void closer_release(struct closer *closer);

#endif
