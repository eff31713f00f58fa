/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How the events of a process become a segment's bytes (docs/trace-format.md, "Process events").
 *
 * A goroutine or thread mostly does what it did the last time it was here. So each field of an event is
 * predicted from what its actor did before; a byte for each event says which fields are not what was
 * predicted. Of these the rank among the last different values of the field is written, or the value itself
 * as a difference, each field in a column of its own. Times are differences in a column, too. When the
 * segment is sealed, zstd packs each column.
 *
 * The work for an event is bounded by a constant; nothing is packed before the segment is sealed. The memory
 * of an encoder is bounded by PROCESS_SEGMENT_EVENTS and the columns: a few hundred KiB mostly, 4 MiB at
 * worst.
 */
#ifndef TRACESTORE_PROCESS_CODEC_H
#define TRACESTORE_PROCESS_CODEC_H

#include <stddef.h>
#include <stdint.h>

#include "store/bytes/bytes.h"
#include "store/segment/numbering.h"
#include "store/segment/segment.h"
#include "store/streams/process_events.h"

#define PROCESS_CODEC 1                         /* process_segments.codec */
#define PROCESS_SEGMENT_EVENTS 0x10000u         /* a segment is full with so many */
#define PROCESS_SEGMENT_BYTES ((size_t)1 << 19) /* or when its columns take so many bytes unpacked */

struct process_encoder;

/* NULL: out of memory. */
struct process_encoder *process_encoder_new(enum process_stream stream);
void process_encoder_free(struct process_encoder *encoder); /* accepts NULL */
/* As new, but keeps the memory. */
void process_encoder_clear(struct process_encoder *encoder);

/* Appends an event; its time is not before the last one's. Where `value` is a name (process_streams.h), it is
 * the lowest 32 bits of it. -E2BIG: the segment is full; -ENOMEM. In both cases nothing has changed. */
int process_encoder_add(struct process_encoder *encoder, const struct process_event *event);

/* Of the events so far. */
struct process_extent {
    uint64_t events, first_ns, last_ns;
    size_t bytes; /* of the columns, unpacked */
};
struct process_extent process_encoder_extent(const struct process_encoder *encoder);

/* A segment whose columns are packed; its names still have numbers (store/segment/numbering.h). */
struct process_sealed {
    enum process_stream stream;
    struct process_extent extent;
    struct bytes columns;
    struct function_calls *names; /* functions or call sites in the order of the dictionary; calls: events
                                     that name it */
    size_t name_count;
};

/* The encoder stays as it is. -ENOMEM. Release with process_sealed_release. */
int process_encoder_seal(const struct process_encoder *encoder, struct process_sealed *ret_sealed);
void process_sealed_release(struct process_sealed *sealed);

/* Appends the payload to `payload` and the list of names (store/segment/call_list.h) to `list`, both with the
 * ids that `numbering` has for the numbers; NULL: they are ids. -ENOMEM. */
int process_sealed_write(const struct process_sealed *sealed, const struct numbering *numbering,
                         struct bytes *payload, struct bytes *list);

struct process_decoder;

/* Unpacks the payload of a segment of that stream with `events` events; the bytes may be freed then.
 * -EBADMSG, -ENOMEM, and -ENOTSUP: a newer tracectl has written it. */
int process_decoder_open(enum process_stream stream, const uint8_t *data, size_t size, uint64_t events,
                         struct process_decoder **ret_decoder);
void process_decoder_free(struct process_decoder *decoder); /* accepts NULL */
/* 0 with the next event, 1 behind the last one, -EBADMSG. */
int process_decoder_next(struct process_decoder *decoder, struct process_event *ret_event);

#endif
