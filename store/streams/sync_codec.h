/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How the synchronisation events of a process become a segment's bytes (docs/trace-format.md, "Segments of
 * synchronisation events").
 *
 * Each field has a column of varints: how it differs from what was expected of it. A thread mostly does the
 * same after the same event as the last time, at the same place, with the same lock; a connection goes on
 * where its last message ended; so most varints are 0, and zstd packs the columns when the segment is sealed.
 *
 * The work for an event is bounded by a constant. An encoder takes about 100 KiB and its columns, which are
 * bounded by SYNC_SEGMENT_BYTES.
 */
#ifndef TRACESTORE_SYNC_CODEC_H
#define TRACESTORE_SYNC_CODEC_H

#include <stddef.h>
#include <stdint.h>

#include "store/bytes/bytes.h"
#include "store/segment/numbering.h"
#include "store/streams/sync_events.h"

#define SYNC_CODEC 1                         /* sync_segments.codec */
#define SYNC_SEGMENT_EVENTS 0x10000u         /* a segment is full with so many */
#define SYNC_SEGMENT_BYTES ((size_t)1 << 20) /* or when its columns take so many bytes unpacked */

struct sync_encoder;

/* NULL: out of memory. */
struct sync_encoder *sync_encoder_new(void);
void sync_encoder_free(struct sync_encoder *encoder); /* accepts NULL */
/* As new, but keeps the memory. */
void sync_encoder_clear(struct sync_encoder *encoder);

/* Appends an event; its time is not before the last one's. -E2BIG: the segment is full; -ENOMEM. In both
 * cases nothing has changed. */
int sync_encoder_add(struct sync_encoder *encoder, const struct process_event *event);

/* Of the events so far. */
struct sync_extent {
    uint64_t events, first_ns, last_ns;
};
struct sync_extent sync_encoder_extent(const struct sync_encoder *encoder);

/* A segment whose columns are packed; its call sites still have numbers (store/segment/numbering.h). */
struct sync_sealed {
    struct sync_extent extent;
    struct bytes columns;
    uint32_t *sites; /* in the order of the dictionary */
    size_t site_count;
};

/* The encoder stays as it is. -ENOMEM. Release with sync_sealed_release. */
int sync_encoder_seal(const struct sync_encoder *encoder, struct sync_sealed *ret_sealed);
void sync_sealed_release(struct sync_sealed *sealed);

/* Appends the payload, with the ids that `numbering` has for the numbers; NULL: they are ids. -ENOMEM. */
int sync_sealed_write(const struct sync_sealed *sealed, const struct numbering *numbering,
                      struct bytes *payload);

struct sync_decoder;

/* Unpacks a payload, which may be forgotten then, of `events` events. -EBADMSG, -ENOMEM, and -ENOTSUP: a
 * newer tracectl has written it. */
int sync_decoder_open(const uint8_t *data, size_t size, uint64_t events, struct sync_decoder **ret_decoder);
void sync_decoder_free(struct sync_decoder *decoder); /* accepts NULL */
/* 0 with the next event, 1 behind the last one, -EBADMSG. */
int sync_decoder_next(struct sync_decoder *decoder, struct process_event *ret_event);

#endif
