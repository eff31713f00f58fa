/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The event iterator for the inside of store/: on a bare SQLite connection, with constraints that skip whole
 * segments, and with the calls that are open around an event. The public part is in store/api/tracestore.h.
 */
#ifndef TRACESTORE_EVENT_ITER_H
#define TRACESTORE_EVENT_ITER_H

#include <stdbool.h>
#include <stdint.h>

#include "store/api/tracestore.h"
#include "store/segment/function_set.h"
#include "store/segment/segment.h"

/* What a reader can do without. Sequence numbers and times are exact; functions only leave out segments that
 * cannot hold a match, so the caller still looks at each event. */
struct event_range {
    uint64_t first_seq, last_seq; /* both included; last_seq UINT64_MAX: to the end */
    uint64_t from_ns, to_ns;      /* both included, only events with a time; to_ns 0: no constraint on time */
    /* With calls, returns or losses (TRACESTORE_LOST_FUNCTION) of these; NULL: any. It must outlive the
     * iterator. */
    const struct function_set *functions;
    bool no_sites; /* call sites are not asked for, and not decoded */
};

/* Like event_iter_open. `range` may be NULL: everything. `db` must outlive the iterator. */
int event_iter_open_db(struct sqlite3 *db, int64_t thread_id, const struct event_range *range,
                       struct event_iter **ret_iter, struct error *err);

/* The calls that are open after the event that event_iter_next gave last, outermost first. After a call event
 * the last one is that call and the one before it its parent. Valid until the next event_iter_next. */
const struct open_call *event_iter_open_calls(const struct event_iter *iter, size_t *ret_count);

/* The call that was ended by the return that event_iter_next gave last; meaningless after other events. */
const struct open_call *event_iter_ended_call(const struct event_iter *iter);

/* Counts a segment for tracestore_decoded_segments. */
void event_iter_count_decoded(void);

#endif
