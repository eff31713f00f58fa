/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>

#include "store/segment/segment.h"
#include "tests/unit/store/fixture.h"

static void append(struct segment_builder *builder, uint32_t event)
{
    int code = event == TRACESTORE_LOST_FUNCTION ? segment_builder_lost(builder)
               : event                           ? segment_builder_call(builder, event, 0, false)
                                                 : segment_builder_return(builder);

    cr_assert_eq(code, 0, "event %u: %d", event, code);
}

static void append_assumed(struct segment_builder *builder, uint32_t event, bool assumed, bool sites)
{
    if (event && event != TRACESTORE_LOST_FUNCTION)
        cr_assert_eq(segment_builder_call(builder, event, sites ? event % 7 : 0, assumed), 0);
    else
        append(builder, event);
}

/* A closed segment of the events, starting inside a few calls; the nesting of some is assumed. */
static struct closed_segment *build(const struct stream *stream)
{
    struct segment_builder builder;
    struct closed_segment *closed;

    segment_builder_init(&builder, CODEC_DEFAULT, 0);
    append(&builder, 1000000);
    append(&builder, 70);
    append(&builder, 3);
    cr_assert_eq(segment_builder_anchor(&builder, 500), 0);
    append(&builder, 0);
    cr_assert_eq(segment_builder_close(&builder, &closed), 0);
    closed_segment_free(closed);
    for (size_t i = 0; i < stream->count; i++) {
        if (i % 7 == 3)
            cr_assert_eq(segment_builder_anchor(&builder, 1000 + i * 10), 0);
        append_assumed(&builder, stream->events[i], i / 10 % 3 == 1, false);
    }
    cr_assert_eq(segment_builder_close(&builder, &closed), 0);
    segment_builder_release(&builder);
    return closed;
}

struct decoded {
    struct event *events;
    size_t count, capacity;
};

/* 0 when all was decoded, or the error. */
static int decode(const uint8_t *payload, size_t size, uint64_t first_seq, uint64_t event_count,
                  struct decoded *decoded)
{
    AUTO_BYTES room = {0};
    struct segment_parts parts;
    struct segment_decoder *decoder;
    struct event event;
    int code = segment_parse(payload, size, &room, &parts);

    decoded->count = 0;
    if (!code)
        code = segment_decoder_open(&parts, first_seq, event_count, 0, true, &decoder);
    if (code)
        return code;
    while ((code = segment_decoder_next(decoder, &event)) == 0) {
        cr_assert_lt(decoded->count, event_count);
        cr_assert_eq(array_reserve(&decoded->events, &decoded->capacity, decoded->count + 1), 0);
        decoded->events[decoded->count++] = event;
    }
    segment_decoder_free(decoder);
    return code == 1 ? 0 : code;
}

Test(segment, starts_inside_open_calls)
{
    struct stream stream = {0};
    struct decoded decoded = {0};
    struct closed_segment *closed;

    stream_add(&stream, 0);
    stream_add(&stream, 9);
    stream_add(&stream, TRACESTORE_LOST_FUNCTION);
    closed = build(&stream);
    cr_assert_eq(closed->first_seq, 4);
    cr_assert_eq(closed->event_count, 3);
    cr_assert_eq(closed->first_ns, 500);
    cr_assert_eq(decode(closed->payload.data, closed->payload.size, 4, 3, &decoded), 0);
    cr_assert_eq(decoded.events[0].kind, EVENT_RETURN);
    cr_assert_eq(decoded.events[0].function, 70);
    cr_assert_eq(decoded.events[0].depth, 1);
    cr_assert_eq(decoded.events[1].depth, 1);
    cr_assert_eq(decoded.events[1].seq, 5);
    cr_assert_eq(decoded.events[2].kind, EVENT_LOST);
    cr_assert_eq(decoded.events[2].depth, 2);

    /* 9 is called, 70 only returns, and the loss is no call. */
    cr_assert_eq(closed->function_count, 3);
    for (size_t i = 0; i < 3; i++)
        cr_assert_eq(closed->functions[i].calls, closed->functions[i].function == 9 ? 1 : 0);
    closed_segment_free(closed);
    stream_release(&stream);
    free(decoded.events);
}

Test(segment, times_are_intervals_between_anchors)
{
    struct segment_builder builder;
    struct closed_segment *closed;
    struct decoded decoded = {0};

    segment_builder_init(&builder, CODEC_DEFAULT, 0);
    segment_builder_anchor(&builder, 90); /* replaced by the next one */
    segment_builder_anchor(&builder, 100);
    append(&builder, 1);
    append(&builder, 2);
    segment_builder_anchor(&builder, 150);
    append(&builder, 0);
    segment_builder_anchor(&builder, 140); /* a clock does not go back */
    append(&builder, 0);
    cr_assert_eq(segment_builder_close(&builder, &closed), 0);
    cr_assert_eq(decode(closed->payload.data, closed->payload.size, 0, 4, &decoded), 0);
    cr_assert_eq(decoded.events[0].ns, 100);
    cr_assert_eq(decoded.events[0].ns_error, 0, "it has an anchor of its own");
    cr_assert_eq(decoded.events[1].ns, 100);
    cr_assert_eq(decoded.events[1].ns_error, 50);
    cr_assert_eq(decoded.events[2].ns, 150);
    cr_assert_eq(decoded.events[2].ns_error, 0);
    cr_assert_eq(decoded.events[3].ns, 150);
    closed_segment_free(closed);

    /* The next segment knows the last anchor of this one. */
    append(&builder, 1);
    cr_assert_eq(segment_builder_close(&builder, &closed), 0);
    cr_assert_eq(decode(closed->payload.data, closed->payload.size, 4, 1, &decoded), 0);
    cr_assert_eq(decoded.events[0].ns, 150);
    closed_segment_free(closed);
    segment_builder_release(&builder);
    free(decoded.events);
}

Test(segment, refuses_what_is_no_event)
{
    struct segment_builder builder;

    segment_builder_init(&builder, CODEC_DEFAULT, 0);
    cr_assert_eq(segment_builder_return(&builder), -EINVAL);
    cr_assert_eq(segment_builder_call(&builder, 0, 0, false), -EINVAL);
    cr_assert_eq(segment_builder_call(&builder, TRACESTORE_LOST_FUNCTION, 0, false), -EINVAL);
    for (uint32_t i = 1; i <= SEGMENT_MAX_FUNCTIONS; i++)
        cr_assert_eq(segment_builder_call(&builder, i * 3, 0, false), 0);
    cr_assert_eq(segment_builder_call(&builder, 1, 0, false), -E2BIG);
    cr_assert_eq(segment_builder_call(&builder, 3, 0, false), 0,
                 "a function that is in the dictionary still fits");
    cr_assert_eq(builder.event_count, SEGMENT_MAX_FUNCTIONS + 1);
    segment_builder_release(&builder);
}

Test(segment, calls_only_opens_nothing)
{
    struct segment_builder builder;
    struct closed_segment *closed;
    struct decoded decoded = {0};

    segment_builder_init(&builder, CODEC_DEFAULT, SEGMENT_CALLS_ONLY);
    append(&builder, 5);
    append(&builder, 6);
    cr_assert_eq(segment_builder_return(&builder), -EINVAL);
    cr_assert_eq(segment_builder_close(&builder, &closed), 0);
    cr_assert_eq(decode(closed->payload.data, closed->payload.size, 0, 2, &decoded), 0);
    cr_assert_eq(decoded.events[1].depth, 0);
    closed_segment_free(closed);
    segment_builder_release(&builder);
    free(decoded.events);
}

/* ------------------------------------------------------------------------------------------ assumed calls */

/* Which calls are assumed: none, all, one in 20, or long stretches. */
enum assumed_kind { ASSUMED_NONE, ASSUMED_ALL, ASSUMED_RARE, ASSUMED_STRETCHES };
#define ASSUMED_KINDS 4

static bool draw_assumed(struct generator *generator, enum assumed_kind kind, size_t at)
{
    switch (kind) {
    case ASSUMED_NONE:
        return false;
    case ASSUMED_ALL:
        return true;
    case ASSUMED_RARE:
        return generator_below(generator, 20) == 0;
    default:
        return at / 50 % 2;
    }
}

/* What a reader must find, by the stream itself: for each event, and for each call that is open. */
struct expected {
    bool events[2000];
    struct {
        uint64_t seq;
        bool assumed;
    } open[2000];
    size_t count, depth;
    bool any; /* in the segment, or open at its begin */
};

static void expect_event(struct expected *expected, uint64_t seq, uint32_t event, bool assumed, bool opens)
{
    bool call = event && event != TRACESTORE_LOST_FUNCTION;

    expected->events[expected->count++] = call && assumed;
    expected->any |= call && assumed;
    if (call && opens) {
        expected->open[expected->depth].seq = seq;
        expected->open[expected->depth++].assumed = assumed;
    } else if (!event) {
        expected->depth--;
    }
}

static void compare_open(const struct segment_decoder *decoder, const struct expected *expected)
{
    size_t depth;
    const struct open_call *open = segment_decoder_open_calls(decoder, &depth);

    cr_assert_eq(depth, expected->depth);
    for (size_t i = 0; i < depth; i++) {
        cr_assert_eq(open[i].seq, expected->open[i].seq);
        cr_assert_eq(open[i].assumed, expected->open[i].assumed, "open call %zu", i);
    }
}

/* Decodes the segment. `end`: what its events say, and the calls that are open behind it. */
static void compare_assumed(const struct closed_segment *closed, const struct expected *end)
{
    AUTO_BYTES room = {0};
    struct segment_parts parts;
    struct segment_decoder *decoder;
    struct event event;

    cr_assert_eq(segment_parse(closed->payload.data, closed->payload.size, &room, &parts), 0);
    cr_assert_eq(!!(parts.flags & SEGMENT_ASSUMED), end->any);
    cr_assert_eq(parts.sections[SECTION_ASSUMED].size > 0, end->any);
    cr_assert_eq(segment_decoder_open(&parts, closed->first_seq, closed->event_count, 0, true, &decoder), 0);
    for (size_t i = 0; i < end->count; i++) {
        cr_assert_eq(segment_decoder_next(decoder, &event), 0);
        cr_assert_eq(event.assumed, end->events[i], "event %zu", i);
    }
    cr_assert_eq(segment_decoder_next(decoder, &event), 1);
    compare_open(decoder, end);
    segment_decoder_free(decoder);
}

static void assumed_in_segments(const struct stream *stream, enum assumed_kind kind, uint8_t flags)
{
    bool opens = !(flags & SEGMENT_CALLS_ONLY);
    struct generator generator = {7};
    struct expected *expected = calloc(1, sizeof(*expected));
    struct segment_builder builder;
    uint64_t seq = 0;

    segment_builder_init(&builder, CODEC_DEFAULT, flags);
    for (size_t i = 0; i < stream->count;) {
        size_t cut = i + 1 + generator_below(&generator, 300);
        struct closed_segment *closed;

        expected->count = 0;
        expected->any = false;
        for (size_t d = 0; d < expected->depth; d++)
            expected->any |= expected->open[d].assumed;
        for (; i < cut && i < stream->count; i++) {
            bool assumed = draw_assumed(&generator, kind, i);

            if (!stream->events[i] && !opens)
                continue;
            append_assumed(&builder, stream->events[i], assumed, flags & SEGMENT_CALL_SITES);
            expect_event(expected, seq++, stream->events[i], assumed, opens);
        }
        cr_assert_eq(segment_builder_close(&builder, &closed), 0);
        compare_assumed(closed, expected);
        closed_segment_free(closed);
    }
    segment_builder_release(&builder);
    free(expected);
}

Test(segment, assumed_calls_are_read_as_written)
{
    for (enum stream_kind kind = 0; kind < STREAM_KINDS; kind++) {
        struct stream stream = {0};

        stream_generate(&stream, kind, 3, 2000);
        for (enum assumed_kind assumed = 0; assumed < ASSUMED_KINDS; assumed++)
            for (uint8_t flags = 0; flags <= (SEGMENT_CALLS_ONLY | SEGMENT_CALL_SITES); flags++)
                assumed_in_segments(&stream, assumed, flags);
        stream_release(&stream);
    }
}

/* Two functions that call back a third in turn, one of them out of a library: told once, not at every turn.
 */
Test(segment, assumed_calls_in_a_loop_cost_nothing)
{
    struct segment_builder builder;
    struct closed_segment *closed;
    size_t sizes[2];

    for (int assumed = 0; assumed < 2; assumed++) {
        segment_builder_init(&builder, CODEC_DEFAULT, 0);
        for (uint32_t i = 0; i < 20000; i++) {
            append(&builder, 1 + i % 2);
            append_assumed(&builder, 3, assumed && i % 2, false);
            append(&builder, 4);
            for (int returns = 0; returns < 3; returns++)
                append(&builder, 0);
        }
        cr_assert_eq(segment_builder_close(&builder, &closed), 0);
        sizes[assumed] = closed->payload.size;
        closed_segment_free(closed);
        segment_builder_release(&builder);
    }
    cr_assert_gt(sizes[1], sizes[0]);
    cr_assert_leq(sizes[1], sizes[0] + 10, "%zu bytes, %zu without", sizes[1], sizes[0]);
}

/* The bytes of a segment in which nothing is assumed. */
Test(segment, without_assumed_calls_nothing_is_added)
{
    static const uint8_t golden[] = {0x01, 0x01, 0x00, 0x00, 0x02, 0x04, 0x03, 0x08,
                                     0x00, 0x00, 0x02, 0xe8, 0x07, 0x5f, 0xd5, 0x04};
    struct segment_builder builder;
    struct closed_segment *closed;
    struct decoded decoded = {0};

    segment_builder_init(&builder, CODEC_DEFAULT, 0);
    append(&builder, 5);
    append(&builder, 6);
    segment_builder_anchor(&builder, 1000);
    append(&builder, 0);
    append(&builder, 6);
    cr_assert_eq(segment_builder_close(&builder, &closed), 0);
    cr_assert_eq(closed->payload.size, sizeof(golden));
    cr_assert_eq(memcmp(closed->payload.data, golden, sizeof(golden)), 0);
    cr_assert_eq(decode(golden, sizeof(golden), 0, 4, &decoded), 0);
    for (size_t i = 0; i < 4; i++)
        cr_assert_not(decoded.events[i].assumed);
    closed_segment_free(closed);
    segment_builder_release(&builder);
    free(decoded.events);
}

/* The flag without its section, the section without the flag, and lengths that go beyond the last call. */
Test(segment, an_assumed_section_that_says_nothing_is_refused)
{
    struct segment_builder builder;
    struct closed_segment *closed;
    AUTO_BYTES room = {0};
    struct segment_parts parts;
    static const uint8_t long_run[] = {2};
    AUTO_BYTES payload = {0};
    struct decoded decoded = {0};

    segment_builder_init(&builder, CODEC_DEFAULT, 0);
    append(&builder, 5);
    append(&builder, 6);
    cr_assert_eq(segment_builder_close(&builder, &closed), 0);
    segment_builder_release(&builder);
    cr_assert_eq(segment_parse(closed->payload.data, closed->payload.size, &room, &parts), 0);
    parts.flags |= SEGMENT_ASSUMED;
    cr_assert_eq(segment_assemble(&parts, &payload), 0);
    cr_assert_eq(decode(payload.data, payload.size, 0, 2, &decoded), -EBADMSG);

    payload.size = 0;
    parts.sections[SECTION_ASSUMED] = (struct section){long_run, sizeof(long_run)};
    cr_assert_eq(segment_assemble(&parts, &payload), 0);
    cr_assert_eq(decode(payload.data, payload.size, 0, 2, &decoded), -EBADMSG, "both calls are zeros");
    closed_segment_free(closed);
    free(decoded.events);
}

/* ------------------------------------------------------------------------------------------ damage */

/* Each byte of a small segment set to each of many values: the decoder says -EBADMSG (or -ENOTSUP for another
 * version), or decodes some events, as many as declared; it never goes wild. The checksum, which catches all
 * of this in a store, is not looked at here. */
Test(segment, damage_is_an_error_or_events)
{
    struct stream stream = {0};
    struct decoded decoded = {0};
    struct closed_segment *closed;
    size_t refused = 0, tried = 0;

    stream_generate(&stream, STREAM_LOSSES, 4, 300);
    closed = build(&stream);
    for (size_t at = 0; at < closed->payload.size; at++) {
        for (unsigned change = 1; change < 256; change += 2) {
            int code;

            closed->payload.data[at] ^= (uint8_t)change;
            code = decode(closed->payload.data, closed->payload.size, closed->first_seq, closed->event_count,
                          &decoded);
            cr_assert(code == 0 || code == -EBADMSG || code == -ENOTSUP, "byte %zu: %d", at, code);
            if (!code)
                cr_assert_eq(decoded.count, closed->event_count);
            refused += code != 0;
            tried++;
            closed->payload.data[at] ^= (uint8_t)change;
        }
    }
    cr_assert_gt(refused, tried / 2, "%zu of %zu refused", refused, tried);
    closed_segment_free(closed);
    stream_release(&stream);
    free(decoded.events);
}

/* Every prefix, and the whole with a byte more. */
Test(segment, cut_or_lengthened_is_an_error)
{
    struct stream stream = {0};
    struct decoded decoded = {0};
    struct closed_segment *closed;

    stream_generate(&stream, STREAM_LOOPS, 4, 300);
    closed = build(&stream);
    for (size_t size = 0; size < closed->payload.size; size++)
        cr_assert_eq(decode(closed->payload.data, size, closed->first_seq, closed->event_count, &decoded),
                     -EBADMSG, "%zu bytes", size);
    bytes_add_u8(&closed->payload, 0);
    cr_assert_eq(
        decode(closed->payload.data, closed->payload.size, closed->first_seq, closed->event_count, &decoded),
        -EBADMSG);
    closed->payload.size--;
    cr_assert_eq(
        decode(closed->payload.data, closed->payload.size, closed->first_seq, closed->event_count, &decoded),
        0);
    cr_assert_eq(decode(closed->payload.data, closed->payload.size, closed->first_seq,
                        closed->event_count - 1, &decoded),
                 -EBADMSG, "one event fewer than there are");
    cr_assert_eq(decode(closed->payload.data, closed->payload.size, closed->first_seq,
                        closed->event_count + 1, &decoded),
                 -EBADMSG, "one event more than there are");
    cr_assert_eq(decode(closed->payload.data, closed->payload.size, closed->first_seq, UINT64_MAX, &decoded),
                 -EBADMSG, "more events than a segment may have");
    closed_segment_free(closed);
    stream_release(&stream);
    free(decoded.events);
}

/* A thread that has run for months: numbers of events need more than 32 bits, those of open calls, too. */
Test(segment, behind_ten_thousand_million_events)
{
    struct segment_builder builder;
    struct closed_segment *closed;
    struct decoded decoded = {0};
    const struct open_call *open;

    segment_builder_init(&builder, CODEC_DEFAULT, 0);
    builder.first_seq = 10000000000 - 2;
    append(&builder, 5);
    append(&builder, 6);
    cr_assert_eq(segment_builder_close(&builder, &closed), 0);
    closed_segment_free(closed);
    append(&builder, 0);
    append(&builder, 7);
    cr_assert_eq(segment_builder_close(&builder, &closed), 0);
    cr_assert_eq(closed->first_seq, 10000000000);
    cr_assert_eq(decode(closed->payload.data, closed->payload.size, closed->first_seq, 2, &decoded), 0);
    cr_assert_eq(decoded.events[0].seq, 10000000000);
    cr_assert_eq(decoded.events[0].function, 6);
    cr_assert_eq(decoded.events[1].seq, 10000000001);
    cr_assert_eq(decoded.events[1].depth, 1);
    open = builder.open;
    cr_assert_eq(open[0].seq, 10000000000 - 2);
    cr_assert_eq(open[1].seq, 10000000001);
    closed_segment_free(closed);
    segment_builder_release(&builder);
    free(decoded.events);
}
