/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What others wait for, while the causes of events are looked for (causes.h): by what it is, its process and
 * its address or number. */
#ifndef TRACECTL_ANALYZER_CASCADE_WAITED_H
#define TRACECTL_ANALYZER_CASCADE_WAITED_H

#include <uthash.h>

#include "analyzer/cascade/trace.h"

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

/* What the event is about, made when it is new; `nothing` for an event that no thread waits for. NULL: no
 * memory. */
struct waited *waited_of_event(struct waited **table, const struct cascade_trace *trace,
                               const struct process_event *event, struct waited *nothing);

/* Whether no other event will be about it: events that are queued are many, each with an object of its own. */
bool waited_is_used_up(const struct waited *waited, const struct process_event *event);

void waited_forget(struct waited **table, struct waited *waited);

/* Appends a mark; those before `first` may be thrown away. -ENOMEM. */
int waited_mark(struct waited *waited, uint32_t event, uint32_t node);

#endif
