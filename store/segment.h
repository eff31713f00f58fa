/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One segment: a stretch of one thread's stream that can be decoded without any other (docs/trace-format.md).
 *
 * segment_builder makes it event by event; segment_parse and segment_decoder read it. A reader takes every byte
 * as hostile: what is wrong gives -EBADMSG, time is bounded by the declared number of events, and memory by the
 * bytes that were read plus one open_call an event.
 */
#ifndef TRACESTORE_SEGMENT_H
#define TRACESTORE_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/bytes.h"
#include "store/codec.h"
#include "store/tracestore.h"

#define SEGMENT_VERSION 1
#define SEGMENT_MAX_EVENTS ((uint64_t)16 << 20) /* a reader refuses more: bounds its time and memory */
#define SEGMENT_MAX_FUNCTIONS 65535u            /* local ids 1..65535 */

/* Flags of a segment. A reader refuses segments with flags that it does not know. */
#define SEGMENT_CALLS_ONLY 1u /* the thread's returns are not recorded: a call opens nothing */
#define SEGMENT_KNOWN_FLAGS 1u

struct open_call {
    uint64_t seq;      /* of the call event */
    uint64_t ns;       /* of the anchor at or before it, 0 when there is none */
    uint32_t function; /* function_id */
};

/* The sections of a segment, in their order in the file. */
enum segment_section { SECTION_STACK, SECTION_DICTIONARY, SECTION_TIME, SECTION_CODE, SECTION_COUNT };

struct section {
    const uint8_t *data;
    size_t size;
};

/* A segment taken apart; the sections borrow the payload. */
struct segment_parts {
    uint8_t codec, flags;
    struct section sections[SECTION_COUNT];
};

/* Takes a payload apart. -EBADMSG: lengths that do not add up; -ENOTSUP: a version or flag we do not know. */
int segment_parse(const uint8_t *payload, size_t size, struct segment_parts *ret_parts);

/* Appends the payload made of `parts` to `payload`. -ENOMEM. */
int segment_assemble(const struct segment_parts *parts, struct bytes *payload);

/* ------------------------------------------------------------------------------------------ reading */

struct segment_decoder;

/* Starts decoding; `parts` (and what it borrows) must outlive the decoder. `until_ns` bounds the events behind
 * the last time anchor, 0 when nothing does. -EBADMSG, -ENOTSUP (codec), -ENOMEM. */
int segment_decoder_open(const struct segment_parts *parts, uint64_t first_seq, uint64_t event_count,
                         uint64_t until_ns, struct segment_decoder **ret_decoder);
void segment_decoder_free(struct segment_decoder *decoder);

/* 0 with an event, 1 at the end of a segment that was right to its last bit, <0 on error. */
int segment_decoder_next(struct segment_decoder *decoder, struct event *ret_event);

/* See event_iter_open_calls and event_iter_ended_call. */
const struct open_call *segment_decoder_open_calls(const struct segment_decoder *decoder, size_t *ret_count);
const struct open_call *segment_decoder_ended_call(const struct segment_decoder *decoder);

/* The functions of a dictionary section, in the order of their local ids. Free with free(). */
int segment_dictionary(const struct section *section, uint32_t **ret_functions, size_t *ret_count);

/* ------------------------------------------------------------------------------------------ writing */

struct local_id {
    uint32_t function; /* 0: this slot of the table is free */
    uint16_t local;
};

/*
 * The open segment of one thread. Memory: this struct and the open calls while the thread is idle in a segment
 * without events; about 10 KiB from the first event on, growing with the code to at most 140 KiB plus payload.
 */
struct segment_builder {
    const struct codec *codec;
    struct codec_encoder *encoder; /* NULL until the first event */
    uint8_t flags;

    uint64_t first_seq, event_count;
    struct bytes stack, dictionary, time;

    uint32_t *functions; /* of local id i + 1 */
    uint32_t *calls;     /* the number of calls of each */
    size_t function_count, function_capacity, calls_capacity;
    struct local_id *table; /* function id -> local id, open addressing */
    size_t table_size;      /* a power of two, or 0 */

    uint64_t start_ns;     /* the last anchor before the segment, 0: none */
    uint64_t first_ns;     /* the time from which on the segment's events happened, 0: not known */
    uint64_t anchor_ns;    /* the last anchor, in this segment or before it */
    uint64_t anchor_index; /* its event's index in the segment */
    bool has_anchors;      /* in this segment */

    struct open_call *open; /* calls open now */
    size_t depth, open_capacity;
    size_t start_depth; /* calls open at the start... */
    size_t low_depth;   /* ...of which so many never returned in this segment */
    struct open_call *returned; /* calls open at the start that have returned since */
    size_t returned_count, returned_capacity;
};

void segment_builder_init(struct segment_builder *builder, const struct codec *codec, uint8_t flags);
void segment_builder_release(struct segment_builder *builder);

/* Appends an event. -EINVAL (no call to return from, function 0), -ENOMEM; then nothing has changed. -E2BIG: the
 * dictionary is full, close the segment first. */
int segment_builder_call(struct segment_builder *builder, uint32_t function);
int segment_builder_return(struct segment_builder *builder);
int segment_builder_lost(struct segment_builder *builder);
/* The next event happened at `ns`; a time before the last anchor is taken for the last anchor's. */
int segment_builder_anchor(struct segment_builder *builder, uint64_t ns);

/* Payload bytes of the segment as it stands, nearly (a snapshot's tail may add a few). */
size_t segment_builder_bytes(const struct segment_builder *builder);

/* The sections as they would be if the segment were closed now. The code section's last bytes are put in
 * `tail`; `ret_stable` says how many bytes of the code section no later event changes. The parts borrow the
 * builder and hold the code without its tail. */
void segment_builder_snapshot(const struct segment_builder *builder, struct segment_parts *ret_parts,
                              struct codec_tail *ret_tail);

/* Closes the segment and begins the next one behind it. */
struct closed_segment {
    struct closed_segment *next;
    int64_t thread_id; /* for the writer's queue */
    uint64_t first_seq, event_count;
    uint64_t first_ns, last_ns; /* 0: not known */
    uint8_t codec;
    struct bytes payload;
    struct function_calls *functions; /* calls > 0, and those with 0 that only return or are LOST_FUNCTION */
    size_t function_count;
};
struct function_calls {
    uint32_t function;
    uint64_t calls;
};

/* `end_ns`: the segment's events happened before it, 0 when not known. -ENOMEM: nothing has changed. */
int segment_builder_close(struct segment_builder *builder, uint64_t end_ns, struct closed_segment **ret_closed);
void closed_segment_free(struct closed_segment *closed);

/* Gives back all memory but the open calls; the segment must be empty (just closed). */
void segment_builder_rest(struct segment_builder *builder);

#endif
