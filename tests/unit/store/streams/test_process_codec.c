/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#include "store/segment/call_list.h"
#include "store/streams/process_codec.h"
#include "tests/unit/store/go_fixture.h"

static void seal(const struct process_encoder *encoder, const struct numbering *numbering,
                 struct bytes *payload, struct bytes *list)
{
    struct process_sealed sealed;

    cr_assert_eq(process_encoder_seal(encoder, &sealed), 0);
    cr_assert_eq(process_sealed_write(&sealed, numbering, payload, list), 0);
    process_sealed_release(&sealed);
}

static void expect_payload(const struct bytes *payload, const struct process_event *events, size_t count)
{
    struct process_decoder *decoder = NULL;
    struct process_event event;

    cr_assert_eq(process_decoder_open(PROCESS_STREAM_GO, payload->data, payload->size, count, &decoder), 0);
    for (size_t i = 0; i < count; i++) {
        cr_assert_eq(process_decoder_next(decoder, &event), 0, "event %zu", i);
        cr_assert(go_event_same(&event, &events[i]), "event %zu is another one", i);
    }
    cr_assert_eq(process_decoder_next(decoder, &event), 1);
    process_decoder_free(decoder);
}

/* Every event that can be written comes back, whatever stands in it, from segments of any length. */
Test(process_codec, decoding_gives_what_was_encoded)
{
    struct process_event events[3000];
    struct generator generator = {5};

    for (size_t count = 0; count < 3000; count = count * 3 + 1) {
        struct process_encoder *encoder = process_encoder_new(PROCESS_STREAM_GO);
        AUTO_BYTES payload = {0}, list = {0};
        uint64_t ns = 100;

        for (size_t i = 0; i < count; i++) {
            events[i] = go_event_random(&generator, ns);
            ns = events[i].ns;
            cr_assert_eq(process_encoder_add(encoder, &events[i]), 0);
        }
        seal(encoder, NULL, &payload, &list);
        expect_payload(&payload, events, count);
        process_encoder_free(encoder);
    }
}

/* Sealing does not disturb the encoder; clearing leaves nothing behind. */
Test(process_codec, an_encoder_goes_on_after_sealing)
{
    struct process_encoder *encoder = process_encoder_new(PROCESS_STREAM_GO);
    struct process_event *events = calloc(2000, sizeof(*events));
    struct generator generator = {6};

    go_events_of_program(&generator, 4, events, 2000);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < 2000; i++) {
            cr_assert_eq(process_encoder_add(encoder, &events[i]), 0);
            if (i == 999 || i == 1999) {
                AUTO_BYTES payload = {0}, list = {0};

                seal(encoder, NULL, &payload, &list);
                expect_payload(&payload, events, i + 1);
            }
        }
        process_encoder_clear(encoder);
        cr_assert_eq(process_encoder_extent(encoder).events, 0);
    }
    process_encoder_free(encoder);
    free(events);
}

/* A plausible program takes less than four bytes an event. */
Test(process_codec, a_program_takes_few_bytes)
{
    struct process_encoder *encoder = process_encoder_new(PROCESS_STREAM_GO);
    struct process_event *events = calloc(20000, sizeof(*events));
    struct generator generator = {7};
    AUTO_BYTES payload = {0}, list = {0};

    go_events_of_program(&generator, 8, events, 20000);
    for (size_t i = 0; i < 20000; i++)
        cr_assert_eq(process_encoder_add(encoder, &events[i]), 0);
    seal(encoder, NULL, &payload, &list);
    cr_assert_lt(payload.size, 80000);
    process_encoder_free(encoder);
    free(events);
}

Test(process_codec, a_segment_becomes_full)
{
    struct process_encoder *encoder = process_encoder_new(PROCESS_STREAM_GO);
    struct process_event event = {.kind = GO_EVENT_RUN, .goroutine = 3, .ns = 5};
    struct generator generator = {8};
    uint64_t count = 0;

    while (process_encoder_add(encoder, &event) == 0)
        count++;
    cr_assert_eq(count, PROCESS_SEGMENT_EVENTS);
    cr_assert_eq(process_encoder_extent(encoder).events, count);
    process_encoder_clear(encoder);
    for (count = 0; count < PROCESS_SEGMENT_EVENTS; count++) {
        event = go_event_random(&generator, event.ns);
        if (process_encoder_add(encoder, &event))
            break;
    }
    cr_assert_lt(count, PROCESS_SEGMENT_EVENTS);
    cr_assert_geq(process_encoder_extent(encoder).bytes, PROCESS_SEGMENT_BYTES);
    cr_assert_eq(process_encoder_add(encoder, &event), -E2BIG);
    process_encoder_free(encoder);
}

/* Numbers that have become other ids do so in the events and in the list of functions. */
Test(process_codec, numbers_become_ids)
{
    const struct process_event create = {
        .kind = GO_EVENT_CREATE, .goroutine = 1, .other = 2, .value = 11, .site = 10, .ns = 1};
    const struct process_event operate = {
        .kind = GO_EVENT_OPERATE, .goroutine = 2, .value = 11, .site = 10, .ns = 2};
    struct process_encoder *encoder = process_encoder_new(PROCESS_STREAM_GO);
    struct process_event expected[2] = {create, operate};
    struct call_list_reader reader;
    struct function_calls named;
    struct numbering numbering;
    AUTO_BYTES payload = {0}, list = {0};

    numbering_init(&numbering, 0);
    cr_assert_eq(numbering_set(&numbering, 10, 33), 0);
    cr_assert_eq(numbering_set(&numbering, 11, 22), 0);
    cr_assert_eq(process_encoder_add(encoder, &create), 0);
    cr_assert_eq(process_encoder_add(encoder, &operate), 0);
    seal(encoder, &numbering, &payload, &list);
    expected[0].site = expected[1].site = 33;
    expected[0].value = 22; /* a function; that of the other event is just a number */
    expect_payload(&payload, expected, 2);
    cr_assert_eq(call_list_open(list.data, list.size, &reader), 0);
    cr_assert_eq(call_list_next(&reader, &named), 0);
    cr_assert(named.function == 22 && named.calls == 1);
    cr_assert_eq(call_list_next(&reader, &named), 0);
    cr_assert(named.function == 33 && named.calls == 2);
    cr_assert_eq(call_list_next(&reader, &named), 1);
    numbering_release(&numbering);
    process_encoder_free(encoder);
}

/* Decodes to the first failure or the end; gives how it ended. */
static int decode_to_end(const uint8_t *data, size_t size, uint64_t count)
{
    struct process_decoder *decoder = NULL;
    struct process_event event;
    int code = process_decoder_open(PROCESS_STREAM_GO, data, size, count, &decoder);

    while (!code)
        code = process_decoder_next(decoder, &event);
    process_decoder_free(decoder);
    return code;
}

/* A payload that is cut short, too long, or declared to have other events is refused. */
Test(process_codec, damage_is_an_error)
{
    struct process_encoder *encoder = process_encoder_new(PROCESS_STREAM_GO);
    struct process_event events[200];
    struct generator generator = {9};
    AUTO_BYTES payload = {0}, list = {0};

    go_events_of_program(&generator, 3, events, 200);
    for (size_t i = 0; i < 200; i++)
        cr_assert_eq(process_encoder_add(encoder, &events[i]), 0);
    seal(encoder, NULL, &payload, &list);
    cr_assert_eq(decode_to_end(payload.data, payload.size, 200), 1);
    for (size_t size = 0; size < payload.size; size++)
        cr_assert_eq(decode_to_end(payload.data, size, 200), -EBADMSG, "cut at %zu", size);
    cr_assert_eq(decode_to_end(payload.data, payload.size, 199), -EBADMSG);
    cr_assert_eq(decode_to_end(payload.data, payload.size, 201), -EBADMSG);
    cr_assert_eq(bytes_add_u8(&payload, 0), 0);
    cr_assert_eq(decode_to_end(payload.data, payload.size, 200), -EBADMSG);
    payload.data[1] = PROCESS_STREAM_SYNC;
    cr_assert_eq(decode_to_end(payload.data, payload.size, 200), -EBADMSG);
    payload.data[0] = PROCESS_CODEC + 1;
    cr_assert_eq(decode_to_end(payload.data, payload.size, 200), -ENOTSUP);
    process_encoder_free(encoder);
}
