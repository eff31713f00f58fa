/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The may-happen-before relation: who could have to wait for whom by chance (PCatch, section 4.1.2).
 *
 * What is done in a critical section delays whoever wants the same lock, if the two can meet: neither must be
 * over before the other one begins, at least one of them is exclusive, and no third lock keeps them apart.
 * What a handler does delays the events that wait for its pool of threads. A try never waits, but what it
 * took is held all the same.
 */
#ifndef TRACECTL_ANALYZER_CASCADE_CONTENTION_H
#define TRACECTL_ANALYZER_CASCADE_CONTENTION_H

#include "analyzer/cascade/causes.h"

/* A critical section, or the execution of a handler. */
struct section {
    uint32_t thread;
    uint32_t first, last; /* events: the locking, and the unlocking or the last one that was seen inside */
    uint32_t around;      /* of a critical section: the one that was open when it began, TRACE_NONE */
    uint32_t resource;    /* number of the lock or pool */
    uint32_t handler;     /* number of the handler, TRACE_NONE: a critical section */
    bool shared;          /* only reads */
    bool waits;           /* false: it was tried */
    bool ended;
    uint64_t kind; /* sections of one kind are of the same place and do the same */
};

/* What sections are about; those of one resource and thread come one after the other. */
struct resource {
    uint64_t address; /* of a lock in its process; of a pool 0 */
    uint32_t process;
    bool pool;
    uint32_t *sections; /* by thread, then by their first events */
    size_t count, capacity;
};

struct contention {
    struct section *sections; /* by their first events */
    size_t count, capacity;
    struct resource *resources;
    size_t resource_count, resource_capacity;
    uint32_t *section_of; /* by event: the section that begins with it, TRACE_NONE */
};

/* -ENOMEM; release in any case. */
int contention_find(const struct cascade_trace *trace, const struct handlers *handlers,
                    struct contention *ret_contention);
void contention_release(struct contention *contention);

/* Sections of each thread and kind that are looked at, of those that may delay one and the same wait. */
enum { CONTENTION_SAMPLES = 3 };

/* The sections that may delay the beginning of `wanted`: of each other thread and kind up to
 * CONTENTION_SAMPLES, spread over those that there are. With `check` false they need not be concurrent with
 * it (an ablation of the paper, table 4). Appends to an array of the caller's. -ENOMEM. */
int contention_rivals(const struct contention *contention, const struct causality *causality, uint32_t wanted,
                      bool check, uint32_t **rivals, size_t *count, size_t *capacity);

#endif
