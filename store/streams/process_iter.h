/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The events of a process that are not calls (goroutines, synchronisation) are kept in segments of a table of
 * their own kind. Reading them is the same for each kind: segment by segment. The last segment of a process
 * that is being recorded grows between two looks at it: then what is new is read out of the row as it is now.
 * As event_iter.c does, each segment is copied, so that no read transaction stays open.
 */
#ifndef TRACESTORE_PROCESS_ITER_H
#define TRACESTORE_PROCESS_ITER_H

#include <stdbool.h>
#include <stdint.h>

#include "store/db/db.h"
#include "store/streams/process_events.h"

/* What is different from kind to kind. */
struct process_event_kind {
    const char *name; /* "goroutine events" */
    const char *find; /* PROCESS_ITER_FIND(table) */
    /* As go_decoder_open, go_decoder_next and go_decoder_free do it; `next` tells the event's time as well.
     */
    int (*open)(const uint8_t *data, size_t size, uint64_t events, void **ret_decoder);
    int (*next)(void *decoder, void *ret_event, uint64_t *ret_ns);
    void (*free)(void *decoder);
};

/* The first segment with an event at or behind ?2 that may be in the range of times. */
#define PROCESS_ITER_FIND(table) \
    "SELECT segment_id, first_seq, event_count, codec, checksum, data FROM main." table \
    " WHERE process_id = ?1 AND first_seq >= coalesce((SELECT first_seq FROM main." table \
    " WHERE process_id = ?1 AND first_seq <= ?2 ORDER BY first_seq DESC LIMIT 1), 0)" \
    " AND first_seq + event_count > ?2 AND last_ns >= ?3 AND first_ns <= ?4 ORDER BY first_seq LIMIT 1"

/* Both ends included. */
struct process_range {
    uint64_t first_seq, last_seq;
    uint64_t from_ns, to_ns;
};
#define PROCESS_RANGE_ALL ((struct process_range){.last_seq = UINT64_MAX, .to_ns = INT64_MAX})

extern const struct process_event_kind process_events_of_go, process_events_of_sync;

/* process_event_iter_open for a part of the events. */
int process_event_iter_open_db(sqlite3 *db, enum process_stream stream, int64_t process_id,
                               const struct process_range *range, struct process_event_iter **ret_iter,
                               struct error *err);

#endif
