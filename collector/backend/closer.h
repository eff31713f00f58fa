/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Closes descriptors in a thread of its own: the last close of a probe's link waits for the whole machine. */
#ifndef TRACECTL_COLLECTOR_BACKEND_CLOSER_H
#define TRACECTL_COLLECTOR_BACKEND_CLOSER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* All zero is a closer that has nothing to do yet. */
struct closer {
    bool running;
    pthread_t thread;
    int pipe[2];      /* descriptors go through it by number */
    unsigned pending; /* atomic */
};

/* Closes `fd` soon; at once where no thread can be had. */
void closer_close(struct closer *closer, int fd);

/* So many are not closed yet. */
unsigned closer_pending(const struct closer *closer);

/* Waits until all are closed. */
void closer_release(struct closer *closer);

#endif
