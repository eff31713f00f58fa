/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Calls of some functions that are to be reported as they come, or when they took long.
 *
 * How long a call took is told by the times of its records. Not every record has one (--time anchor): then it
 * is that of the last record of the thread that had, which is less than a tick of the kernel before it. A
 * return that is inferred has no time: the call has lasted until the last record that came from inside of it,
 * which may be less than it did, and is never more. So a call is too slow only when it certainly was, but for
 * that tick.
 *
 * A call whose return is probed and has not come is open: it is told when it has been for a second longer
 * than it may, whether it ever returns or not.
 */
#ifndef TRACECTL_COLLECTOR_STREAM_CALL_WATCH_H
#define TRACECTL_COLLECTOR_STREAM_CALL_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct call_evidence;
struct traced_thread;

/* Of one thread; all zero: none. */
struct watched_calls {
    struct watched_call *calls; /* open ones, outermost first */
    size_t count, capacity;
    uint64_t last_ns; /* of the last record with a time; CLOCK_MONOTONIC */
};
void watched_calls_release(struct watched_calls *watched);

/* What has happened. */
struct call_hit {
    unsigned process, thread; /* "P.T" */
    uint32_t tid, function;
    uint64_t slow_ns; /* how long it took, at least; 0: it was called, and that is all */
    bool is_open;     /* and has not returned */
};

struct call_watch_options {
    /* Whether a function is watched, and for what: as flight_watches() has it. Asked once for each. */
    bool (*asks)(void *context, uint32_t function, uint64_t *ret_slow_ns, bool *ret_calls);
    void (*hit)(void *context, const struct call_hit *hit);
    void *context;
};

struct call_watch;

/* NULL: no memory. */
struct call_watch *call_watch_new(const struct call_watch_options *options);
void call_watch_free(struct call_watch *watch); /* accepts NULL */

/* A call has come, and is on the thread's stack. `ns` 0: it had no time. -ENOMEM. */
int call_watch_call(struct call_watch *watch, struct traced_thread *thread, const struct call_evidence *call,
                    uint64_t ns);
/* A probed return has come, and the stack is as it is after it. */
void call_watch_return(struct call_watch *watch, struct traced_thread *thread, uint64_t ns);
/* The calls that are open have been until `ns`: tells those that have been for `patience_ns` more than they
 * may. */
void call_watch_check(struct call_watch *watch, struct traced_thread *thread, uint64_t ns,
                      uint64_t patience_ns);

#endif
