/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How the events of a process become a segment's bytes (docs/trace-format.md, "Segments of goroutine
 * events").
 *
 * A goroutine mostly does what it did the last time it was here. So each field of an event is predicted from
 * what the goroutine did before; a byte for each event says which fields are not what was predicted. Of these
 * the rank among the last different values of the field is written, or the value itself as a difference, each
 * field in a column of its own. Times are differences in a column, too. When the segment is sealed, zstd
 * packs each column.
 *
 * The work for an event is bounded by a constant; nothing is packed before the segment is sealed. What the
 * encoder takes is bounded by GO_SEGMENT_EVENTS and the columns: a few hundred KiB mostly, 4 MiB at worst.
 */
#ifndef TRACESTORE_GO_CODEC_H
#define TRACESTORE_GO_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/bytes/bytes.h"
#include "store/segment/numbering.h"
#include "store/segment/segment.h"
#include "store/streams/go_events.h"

#define GO_CODEC 1                         /* go_segments.codec */
#define GO_SEGMENT_EVENTS 0x10000u         /* a segment is full with so many */
#define GO_SEGMENT_BYTES ((size_t)1 << 19) /* or when its columns take so many bytes unpacked */

struct go_encoder;

/* NULL: out of memory. */
struct go_encoder *go_encoder_new(void);
void go_encoder_free(struct go_encoder *encoder); /* accepts NULL */
/* As new, but keeps the memory. */
void go_encoder_clear(struct go_encoder *encoder);

/* Appends an event; its time is not before the last one's. Of GO_EVENT_CREATE and GO_EVENT_TEST `value` is a
 * function, the lowest 32 bits of it. -E2BIG: the segment is full; -ENOMEM. In both cases nothing has
 * changed. */
int go_encoder_add(struct go_encoder *encoder, const struct process_event *event);

/* Of the events so far. */
struct go_extent {
    uint64_t events, first_ns, last_ns;
    size_t bytes; /* of the columns, unpacked */
};
struct go_extent go_encoder_extent(const struct go_encoder *encoder);

/* A segment whose columns are packed; its functions still have numbers (store/segment/numbering.h). */
struct go_sealed {
    struct go_extent extent;
    struct bytes columns;
    struct function_calls *functions; /* in the order of the dictionary; calls: events that name it */
    size_t function_count;
};

/* The encoder stays as it is. -ENOMEM. Release with go_sealed_release. */
int go_encoder_seal(const struct go_encoder *encoder, struct go_sealed *ret_sealed);
void go_sealed_release(struct go_sealed *sealed);

/* Appends the payload to `payload` and the list of functions (store/segment/call_list.h) to `list`, both with
 * the ids that `numbering` has for the numbers; NULL: they are ids. -ENOMEM. */
int go_sealed_write(const struct go_sealed *sealed, const struct numbering *numbering, struct bytes *payload,
                    struct bytes *list);

struct go_decoder;

/* Unpacks a payload, which may be forgotten then, of `events` events. -EBADMSG, -ENOMEM, and -ENOTSUP: a
 * newer tracectl has written it. */
int go_decoder_open(const uint8_t *data, size_t size, uint64_t events, struct go_decoder **ret_decoder);
void go_decoder_free(struct go_decoder *decoder); /* accepts NULL */
/* 0 with the next event, 1 behind the last one, -EBADMSG. */
int go_decoder_next(struct go_decoder *decoder, struct process_event *ret_event);

#endif
