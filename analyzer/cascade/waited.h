/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What others wait for, while the causes of events are looked for (causes.h): by what it is, its process and
 * its address or number. */
#ifndef TRACECTL_ANALYZER_CASCADE_WAITED_H
#define TRACECTL_ANALYZER_CASCADE_WAITED_H

#include <uthash.h>

#include "analyzer/cascade/trace.h"

/* What an address, or a number, stands for. */
enum what { WHAT_CONDITION, WHAT_SEMAPHORE, WHAT_BARRIER, WHAT_EVENT, WHAT_THREAD, WHAT_CHILD };

struct mark {
    uint32_t event, node;
    uint32_t round; /* of a barrier */
    bool taken;     /* a signal: by a wait */
};

/* Signals, posts, arrivals, queued events of one object; the creation and the end of a thread or process. */
struct waited {
    unsigned char key[TRACE_KEY_SIZE]; /* object; process and what it is */
    struct mark *marks;
    size_t first, count, capacity;
    uint32_t round;       /* of a barrier: that is not full yet */
    uint32_t made, ended; /* nodes */
    UT_hash_handle hh;
};

/* What is known by that, made when it is new. NULL: no memory. */
struct waited *waited_get(struct waited **table, enum what what, uint32_t process, uint64_t object);
void waited_forget(struct waited **table, struct waited *waited);

/* Appends a mark; those before `first` may be thrown away. -ENOMEM. */
int waited_mark(struct waited *waited, uint32_t event, uint32_t node);

#endif
