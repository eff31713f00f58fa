/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One segment: a stretch of one thread's stream that can be decoded without any other (docs/trace-format.md).
 *
 * segment_builder makes it event by event; segment_parse and segment_decoder read it. A reader takes every
 * byte as hostile: what is wrong gives -EBADMSG, time is bounded by the declared number of events, and memory
 * by the bytes that were read plus one open_call a call event.
 */
#ifndef TRACESTORE_SEGMENT_H
#define TRACESTORE_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/api/tracestore.h"
#include "store/bytes/bit_runs.h"
#include "store/bytes/bytes.h"
#include "store/bytes/codec.h"
#include "store/bytes/dictionary.h"
#include "store/segment/assumed_history.h"
#include "store/segment/sites.h"
#include "store/segment/step_history.h"

#define SEGMENT_VERSION 1
#define SEGMENT_MAX_EVENTS ((uint64_t)16 << 20) /* a reader refuses more: bounds its time and memory */
#define SEGMENT_MAX_FUNCTIONS DICTIONARY_MAX

/* Flags of a segment. A reader refuses segments with flags that it does not know. */
#define SEGMENT_CALLS_ONLY 1u /* the thread's returns are not recorded: a call opens nothing */
#define SEGMENT_CALL_SITES 2u /* every call has its site: the three sections of sites are there */
#define SEGMENT_ASSUMED 4u    /* the nesting of some calls is assumed: the section that says which is there */
#define SEGMENT_PACKED 8u     /* finished segments only: the sections that are no code are packed */
#define SEGMENT_OPEN_FLAGS 7u /* those that an open segment may have */
#define SEGMENT_KNOWN_FLAGS 15u

#define OPEN_CALL_SOMETIME UINT64_MAX

struct open_call {
    uint64_t seq;      /* of the call event */
    uint64_t ns;       /* of the anchor at or before it, 0 when there is none */
    uint64_t ns_error; /* vtab_scan.c: as in struct event, OPEN_CALL_SOMETIME: a segment's list has it */
    uint32_t function; /* function_id */
    uint32_t site;     /* site_id, 0: unknown or not asked for; readers only */
    bool assumed;      /* see struct event */
    uint16_t local;    /* id of the function in the segment that the call is in, 0: called before it */
};

/* The sections of a segment, in their order in the file. */
enum segment_section {
    SECTION_STACK,
    SECTION_DICTIONARY,
    SECTION_TIME,
    SECTION_CODE,
    SECTION_SITE_STACK, /* the three of sites: with SEGMENT_CALL_SITES */
    SECTION_SITE_DICTIONARY,
    SECTION_SITE_CODE,
    SECTION_ASSUMED, /* with SEGMENT_ASSUMED */
    SECTION_COUNT
};

/* Whether a segment with these flags has the section. */
static inline bool segment_has_section(uint8_t flags, int section)
{
    if (section < SECTION_SITE_STACK)
        return true;
    return flags & (section == SECTION_ASSUMED ? SEGMENT_ASSUMED : SEGMENT_CALL_SITES);
}

struct section {
    const uint8_t *data;
    size_t size;
};

/* A segment taken apart; the sections are borrowed. */
struct segment_parts {
    uint8_t codec, flags;
    struct section sections[SECTION_COUNT];
};

/* Takes a payload apart. The sections lie in it, or, where it has them packed, in `room`, which is emptied
 * first; both must outlive them. -EBADMSG: lengths that do not add up; -ENOTSUP: a version or flag we do not
 * know; -ENOMEM. */
int segment_parse(const uint8_t *payload, size_t size, struct bytes *room, struct segment_parts *ret_parts);

/* Appends the payload made of `parts` to `payload`. -ENOMEM. */
int segment_assemble(const struct segment_parts *parts, struct bytes *payload);

/* The same, with the sections packed where that is shorter: what a store keeps of finished segments. Takes
 * about 30 ns for each of their bytes. -ENOMEM. */
int segment_seal(const struct segment_parts *parts, struct bytes *payload);

/* ------------------------------------------------------------------------------------------ reading */

struct segment_decoder;

/* Starts decoding; `parts` (and what it borrows) must outlive the decoder. `until_ns` bounds the events
 * behind the last time anchor, 0 when nothing does. Without `sites` the sections of sites are not looked at,
 * and all sites are 0. -EBADMSG, -ENOTSUP (codec), -ENOMEM. */
int segment_decoder_open(const struct segment_parts *parts, uint64_t first_seq, uint64_t event_count,
                         uint64_t until_ns, bool sites, struct segment_decoder **ret_decoder);
void segment_decoder_free(struct segment_decoder *decoder);

/* 0 with an event, 1 at the end of a segment that was right to its last bit, <0 on error: then the event is
 * meaningless. */
int segment_decoder_next(struct segment_decoder *decoder, struct event *ret_event);

/* See event_iter_open_calls and event_iter_ended_call. */
const struct open_call *segment_decoder_open_calls(const struct segment_decoder *decoder, size_t *ret_count);
const struct open_call *segment_decoder_ended_call(const struct segment_decoder *decoder);

/* The functions of a dictionary section, in the order of their local ids. Free with free(). */
int segment_dictionary(const struct section *section, uint32_t **ret_functions, size_t *ret_count);

/* ------------------------------------------------------------------------------------------ writing */

/*
 * The open segment of one thread. Memory: this struct and the open calls while the segment has no events;
 * about 16 KiB from the first event on (30 KiB with call sites), which grows with what the thread does that
 * it has not done before, up to 5 MiB (twice that with call sites), up to 1 MiB more for steps that are kept,
 * and the payload.
 */
#define SEGMENT_NO_ANCHOR SIZE_MAX

struct segment_builder {
    const struct codec *codec;
    struct codec_encoder *encoder; /* NULL until the first event */
    struct site_encoder *sites;    /* NULL without SEGMENT_CALL_SITES, or until the first event */
    uint8_t flags;                 /* without SEGMENT_ASSUMED, which comes with the first such call */

    uint64_t first_seq, event_count;
    size_t first_bytes; /* segment_builder_bytes without events */
    struct bytes stack, time;
    struct bit_runs assumed; /* of the calls of the stack; then of the call events: not as predicted */
    struct assumed_history history;
    uint64_t corrections; /* of its predictions, ever */
    struct step_history kept;
    struct dictionary functions;
    uint32_t *calls; /* of the function with local id i + 1; without those that `kept` still counts */
    size_t calls_capacity;

    uint64_t first_ns;    /* the segment's events happened from then on, 0: not known */
    uint64_t previous_ns; /* the anchor before the last */
    uint64_t anchor_ns;   /* the last anchor, in this segment or before it, 0: none */
    uint64_t previous_index;
    uint64_t anchor_index;
    size_t anchor_at; /* where in `time` the last anchor stands; SEGMENT_NO_ANCHOR: none in this segment */

    struct open_call *open; /* calls open now */
    size_t depth, open_capacity;
    size_t low_depth;   /* of the calls open at the start so many have not returned yet */
    uint32_t *returned; /* functions of those that have */
    size_t returned_count, returned_capacity;
};

void segment_builder_init(struct segment_builder *builder, const struct codec *codec, uint8_t flags);
void segment_builder_release(struct segment_builder *builder);

/* Append an event. -EINVAL (no call to return from, function 0, a site in a stream without them), -ENOMEM,
 * -E2BIG (a dictionary is full: close the segment first); then the stream has not changed. `site` 0: unknown;
 * `assumed` as in struct event. */
int segment_builder_call(struct segment_builder *builder, uint32_t function, uint32_t site, bool assumed);
int segment_builder_return(struct segment_builder *builder);
int segment_builder_lost(struct segment_builder *builder);

/* Appends steps, as many as *ret_done says. Errors as above, -EINVAL also in a stream with call sites. After
 * -E2BIG those behind *ret_done have left no trace; of the others' some may have been appended. */
int segment_builder_steps(struct segment_builder *builder, const struct thread_step *steps, size_t count,
                          size_t *ret_done);

/* The same, and keeps them where it can (store/api/tracestore.h has what for): *ret_kept. */
int segment_builder_keep(struct segment_builder *builder, const struct thread_step *steps, size_t count,
                         size_t *ret_done, struct kept_steps *ret_kept);
/* Appends steps that are kept. -ESTALE: they are not; -EINVAL: other calls are open than were before them;
 * after both nothing has changed. -ENOMEM: some may have been appended. */
int segment_builder_again(struct segment_builder *builder, const struct kept_steps *stretch);
/* How many events those are; 0: they are not kept. */
uint64_t segment_builder_words(const struct segment_builder *builder, const struct kept_steps *stretch);
/* Brings `calls` up to date, which steps that came again are only counted in when somebody asks. */
void segment_builder_settle(struct segment_builder *builder);

/* The next event happened at `ns`; a time before the last anchor is taken for that anchor's. */
int segment_builder_anchor(struct segment_builder *builder, uint64_t ns);

/* Payload bytes of the segment as it stands, but for a few. */
size_t segment_builder_bytes(const struct segment_builder *builder);

/* The last bytes of the sections that codecs write. */
struct segment_tails {
    struct codec_tail code, sites;
};

/* The tail of a section, NULL: it has none. */
static inline const struct codec_tail *segment_tail(const struct segment_tails *tails, int section)
{
    return section == SECTION_CODE ? &tails->code : section == SECTION_SITE_CODE ? &tails->sites : NULL;
}

/* The sections as they would be if the segment ended now, borrowed; those with a tail without it. */
void segment_builder_snapshot(const struct segment_builder *builder, struct segment_parts *ret_parts,
                              struct segment_tails *ret_tails);

struct function_calls {
    uint32_t function;
    uint64_t calls;
};

struct closed_segment {
    struct closed_segment *next; /* for the queue of whoever owns it */
    int64_t thread;              /* the thread's number, set by the owner */
    struct thread_writer *owner; /* whose it is; NULL: nobody's who still writes */
    int64_t segment_id;          /* its row's, once that is written */
    size_t stored_bytes;         /* of its row, about */
    uint64_t first_seq, event_count;
    uint64_t first_ns; /* 0: no times */
    uint64_t last_ns;  /* the events happened before it; set by the owner */
    uint8_t codec;
    struct bytes payload;
    /* What the segment's events name, each function once. With 0 calls: functions that only return in it, and
     * TRACESTORE_LOST_FUNCTION. */
    struct function_calls *functions;
    size_t function_count;
};

/* Closes the segment and begins the next one behind it. -ENOMEM: nothing has changed. */
int segment_builder_close(struct segment_builder *builder, struct closed_segment **ret_closed);
void closed_segment_free(struct closed_segment *closed);

/* Gives back the memory that only a segment with events needs. The segment must be empty: just closed. For a
 * stream at its end: the sites of calls that are still open are forgotten. */
void segment_builder_rest(struct segment_builder *builder);

/* The same for a stream that will continue; forgets nothing. -ENOMEM: nothing has changed. */
int segment_builder_shrink(struct segment_builder *builder);

/* Bytes of memory that the segment takes. */
size_t segment_builder_memory(const struct segment_builder *builder);

/* The part of them that grows with what the thread has not done before; after an event. */
static inline size_t segment_builder_tables(const struct segment_builder *builder)
{
    return builder->encoder->memory + (builder->sites ? builder->sites->words->memory : 0) +
           step_history_memory(&builder->kept);
}

#endif
