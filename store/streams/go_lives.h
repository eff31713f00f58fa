/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The lives of a process's goroutines, followed event by event: what each of those that live is doing. An
 * ended one is given out and forgotten, so memory goes with the goroutines that live at one time.
 */
#ifndef TRACESTORE_GO_LIVES_H
#define TRACESTORE_GO_LIVES_H

#include <uthash.h>

#include "store/streams/go_events.h"

enum go_life_state { GO_LIFE_UNKNOWN, GO_LIFE_RUNNABLE, GO_LIFE_RUNNING, GO_LIFE_BLOCKED, GO_LIFE_ENDED };

struct go_life_operation {
    uint64_t object;
    uint32_t site;
    uint8_t operation, flags; /* operation 0: none */
};

/* A stretch that a goroutine waited. */
struct go_life_block {
    uint64_t goroutine;
    uint64_t seq, ns; /* of the event that began it */
    int64_t reason;
    struct go_life_operation operation; /* that it waited in; 0: in none that was seen */
    bool ended;                         /* its end was seen, at end_ns */
    bool woken;                         /* by the goroutine woken_by, 0: the runtime */
    uint64_t end_ns, woken_by;
};

struct go_life {
    uint64_t goroutine, parent;    /* parent 0: not known */
    uint64_t created_ns, ended_ns; /* 0: not seen */
    uint32_t function, created_at; /* function_id, 0: not known */
    enum go_life_state state;
    uint64_t since_ns;
    struct go_life_operation outer, inner; /* begun last: on its own, and as a part of that */
    struct go_life_block block;            /* the last one; with state blocked the present one */
    bool waits;                            /* `block` has not been given out */
    UT_hash_handle hh;
};

/* Zero-initialised: empty. */
struct go_lives {
    struct go_life *table; /* by goroutine, in the order in which they came */
    /* Whether waiting for that reason is part of an operation; by number. */
    bool in_operation[256];
    bool states_unseen, operations_unseen; /* since the last GO_EVENT_DETAIL */
};

/* What an event has completed: it may end the waiting of the goroutine that it is of, and of the one that it
 * lets continue. */
struct go_lives_updates {
    unsigned blocks;
    struct go_life_block block[2];
    bool has_life;
    struct go_life life;
};

/* Whether waiting for a reason of that name (NULL: unknown) is part of an operation on a channel, a lock or
 * the like, and not, say, for the network. */
bool go_reason_in_operation(const char *name);

/* -ENOMEM. */
int go_lives_event(struct go_lives *lives, const struct process_event *event, uint64_t seq,
                   struct go_lives_updates *ret_news);
/* Forgets the goroutine that came first, giving it out; false: there is none. */
bool go_lives_take(struct go_lives *lives, struct go_lives_updates *ret_news);
void go_lives_release(struct go_lives *lives);

#endif
