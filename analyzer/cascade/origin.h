/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whose job something is (PCatch, section 5): causes are followed back to the root.
 *
 * What a handler does belongs to whoever queued its event; what a thread does after it has received a request
 * belongs to whoever sent that, until it receives the next one; a thread that was made in the course of a job
 * belongs to that. A request is what comes in on a connection that was accepted, or on one where the process
 * has not sent anything yet: an answer to one's own question is no request. At the root there is a client
 * that was not recorded, or a thread of the program's own.
 */
#ifndef TRACECTL_ANALYZER_CASCADE_ORIGIN_H
#define TRACECTL_ANALYZER_CASCADE_ORIGIN_H

#include "analyzer/cascade/causes.h"

enum job_kind {
    JOB_THREAD,  /* a thread that the program made on its own account: a system routine */
    JOB_REQUEST, /* of a client that was not recorded */
    JOB_EVENT,   /* an event whose sender was not seen */
};

struct job {
    enum job_kind kind;
    uint64_t id; /* number of the thread; channel; event */
};

static inline bool same_job(struct job a, struct job b)
{
    return a.kind == b.kind && a.id == b.id;
}

struct origins {
    const struct cascade_trace *trace;
    const struct handlers *handlers;
    const struct causality *causality;
    uint32_t *request_of; /* by event: the request that its line has received last, TRACE_NONE */
};

/* The three must outlive the origins. -ENOMEM; release in any case. */
int origins_find(const struct cascade_trace *trace, const struct handlers *handlers,
                 const struct causality *causality, struct origins *ret_origins);
void origins_release(struct origins *origins);

struct job origin_of(const struct origins *origins, uint32_t event);

#endif
