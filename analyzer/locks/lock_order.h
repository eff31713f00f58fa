/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Deadlocks that could have happened: locks that agents (threads, or goroutines) took in orders that do not
 * fit together, though they met no such schedule. The lock-order graph of Goodlock (Havelund, SPIN 2000) with
 * the gate locks and the segments of Bensalem and Havelund (HVC 2005); chains of dependencies as in iGoodLock
 * (Joshi, Park, Sen and Naik, PLDI 2009).
 *
 * A dependency is an agent that takes (or waits for) one lock while it holds another. Dependencies that lead
 * from lock to lock and back are a potential deadlock, unless
 *   - two of them are of the same agent,
 *   - both agents of two of them hold one more lock then, a gate, at least one of them not only to read,
 *   - where one waits and the next holds, both only read,
 *   - what one agent did was over before another one was made, or before it went on: it waited for the end of
 *     the first one.
 * Taking a lock without waiting for it (try) is told to nobody: what it takes is held, but it is nothing to
 * wait for. Cycles in which all steps got stuck are marked.
 *
 * An agent that reads a lock again while it still reads it is a danger of its own, because a writer that
 * comes in between waits for the first reading to end, and the second one waits behind the writer. It is told
 * where another agent has written, with the same exceptions. (Of locks that prefer readers, as glibc's do
 * unless they are told otherwise, whoever asks has to leave these out.)
 */
#ifndef TRACECTL_ANALYZER_LOCKS_LOCK_ORDER_H
#define TRACECTL_ANALYZER_LOCKS_LOCK_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LONGEST_LOCK_CYCLE = 4,        /* longer ones are not looked for */
    MOST_LOCK_DEPENDENCIES = 4096, /* more are not kept: lock_order_complete */
    MOST_LOCK_CYCLES = 256,        /* more are not looked for */
};

struct lock_dependency {
    uint64_t agent;
    uint64_t held, wanted;           /* addresses of locks */
    uint32_t held_site, wanted_site; /* where it took the one, and where it takes the other */
    bool held_shared, wanted_shared; /* only to read */
};

enum lock_danger {
    LOCK_ORDER,      /* each one wants what the next one holds, the last one what the first one holds */
    LOCK_READ_AGAIN, /* the first one reads again what it reads; the second one, which has `held` 0, writes
                      */
};

struct lock_cycle {
    enum lock_danger danger;
    struct lock_dependency steps[LONGEST_LOCK_CYCLE];
    size_t count;
    bool happened; /* all agents in it got stuck there */
};

struct lock_order;

int lock_order_new(struct lock_order **ret_order);
void lock_order_free(struct lock_order *order);

/* A lock that an agent holds. */
struct lock_hold {
    uint64_t object;
    uint32_t site; /* where it was taken */
    uint64_t ns;
    bool shared; /* to read */
};

/* An agent takes a lock, or waits for it. */
struct lock_taking {
    uint64_t agent, object;
    uint32_t site;
    bool shared;                  /* to read */
    bool writes;                  /* to write, a lock that others may only read */
    bool stuck;                   /* it never got it */
    const struct lock_hold *held; /* what it holds */
    size_t held_count;
    const struct lock_hold *taken; /* of these the lock itself, if it has it already; or NULL */
};

/* -ENOMEM, as all that follow. */
int lock_order_take(struct lock_order *order, const struct lock_taking *taking);
/* An agent has been made, or has ended. */
int lock_order_begin(struct lock_order *order, uint64_t agent);
void lock_order_end(struct lock_order *order, uint64_t agent);
/* `by` has waited for the end of `agent`. */
int lock_order_join(struct lock_order *order, uint64_t agent, uint64_t by);
/* An event of the process has gone by: the time by which what comes before what is known. */
void lock_order_tick(struct lock_order *order);

/* The cycles, those of the same sites once, in the order in which their first dependency was met. Free
 * *ret_cycles with free(). -ENOMEM. */
int lock_order_cycles(const struct lock_order *order, struct lock_cycle **ret_cycles, size_t *ret_count);

/* False: there were more dependencies than are kept. */
bool lock_order_complete(const struct lock_order *order);

#endif
