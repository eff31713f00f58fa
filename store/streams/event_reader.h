/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The payload of a segment of goroutine or synchronisation events: a version, the number of events, the time
 * before the first one, a dictionary of ids and columns that zstd has packed (docs/trace-format.md).
 *
 * Nothing that the bytes say is believed: sizes are bounded by the number of events, local ids by the
 * dictionary, and at the end every column must be read to its last byte.
 */
#ifndef TRACESTORE_EVENT_READER_H
#define TRACESTORE_EVENT_READER_H

#include <stdbool.h>

#include "store/bytes/bytes.h"

#define EVENT_COLUMNS_MAX 24

/* What a kind of events allows. */
struct event_format {
    uint8_t version;
    int columns; /* at most EVENT_COLUMNS_MAX */
    uint64_t events_max;
};

struct event_reader {
    const struct event_format *format;
    struct bytes columns[EVENT_COLUMNS_MAX];
    struct bytes_reader readers[EVENT_COLUMNS_MAX];
    uint32_t *ids; /* of the dictionary */
    size_t id_count;
    uint64_t left; /* events */
    uint64_t ns;   /* before the first event */
};

/* Unpacks a payload, which may be forgotten then, of `events` events. -EBADMSG, -ENOMEM, and -ENOTSUP: a
 * newer tracectl has written it. Whatever it returns, release with event_reader_release. */
int event_reader_open(struct event_reader *reader, const struct event_format *format, const uint8_t *data,
                      size_t size, uint64_t events);
void event_reader_release(struct event_reader *reader);

/* The id of a local id, which counts from 1; 0 is 0. False: there is none. */
static inline bool event_reader_id(const struct event_reader *reader, uint64_t local, uint32_t *ret_id)
{
    if (local > reader->id_count)
        return false;
    *ret_id = local ? reader->ids[local - 1] : 0;
    return true;
}

/* Whether a column has failed, or, at the end, has more than was read. */
bool event_reader_has_failed(const struct event_reader *reader, bool at_end);

#endif
