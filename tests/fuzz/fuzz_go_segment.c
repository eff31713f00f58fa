/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Segments of goroutine events. The input's first byte says what the rest is. Even: a payload; the next three
 * are the number of events that its row would declare, and what decodes is encoded anew and has to come back.
 * Odd: events, 16 bytes each, that are encoded and have to come back.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "store/streams/go_codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool same(const struct process_event *a, const struct process_event *b)
{
    return a->ns == b->ns && a->goroutine == b->goroutine && a->other == b->other && a->object == b->object &&
           a->value == b->value && a->site == b->site && a->tid == b->tid && a->kind == b->kind &&
           a->operation == b->operation && a->flags == b->flags;
}

/* The payload of what the encoder has must give `events`, which begin with what is there. */
static void expect(const struct go_encoder *encoder, const struct process_event *events, size_t count)
{
    struct bytes payload = {0}, list = {0};
    struct go_decoder *decoder = NULL;
    struct go_sealed sealed;
    struct process_event event;

    if (go_encoder_seal(encoder, &sealed) || go_sealed_write(&sealed, NULL, &payload, &list) ||
        go_decoder_open(payload.data, payload.size, count, &decoder))
        abort();
    for (size_t i = 0; i < count; i++)
        if (go_decoder_next(decoder, &event) || !same(&event, &events[i]))
            abort();
    if (go_decoder_next(decoder, &event) != 1)
        abort();
    go_decoder_free(decoder);
    go_sealed_release(&sealed);
    bytes_release(&payload);
    bytes_release(&list);
}

static void encode(const struct process_event *events, size_t count)
{
    struct go_encoder *encoder = go_encoder_new();
    size_t taken = 0;

    while (encoder && taken < count && go_encoder_add(encoder, &events[taken]) == 0)
        taken++;
    if (encoder)
        expect(encoder, events, taken);
    go_encoder_free(encoder);
}

static void decode(const uint8_t *data, size_t size, uint64_t count)
{
    struct go_decoder *decoder = NULL;
    struct process_event *events = NULL;
    size_t decoded = 0;
    int code;

    if (go_decoder_open(data, size, count, &decoder))
        return;
    events = calloc(count + 1, sizeof(*events));
    if (!events)
        abort();
    while ((code = go_decoder_next(decoder, &events[decoded])) == 0)
        if (++decoded > count || (decoded > 1 && events[decoded - 1].ns < events[decoded - 2].ns))
            abort();
    if (code == 1 && decoded != count)
        abort();
    go_decoder_free(decoder);
    encode(events, decoded);
    free(events);
}

static struct process_event event_of(const uint8_t bytes[16], uint64_t ns)
{
    struct process_event event = {
        .ns = ns + bytes[0],
        .kind = bytes[1],
        .operation = bytes[2],
        .flags = bytes[3],
        .goroutine = bytes[4],
        .other = bytes[5],
        .site = bytes[6],
        .tid = bytes[7],
        .object = (uint64_t)bytes[8] << 56 | bytes[9],
    };
    uint32_t value;

    memcpy(&value, bytes + 10, sizeof(value));
    event.value =
        event.kind == GO_EVENT_CREATE || event.kind == GO_EVENT_TEST ? value : (int64_t)value - bytes[14];
    event.site |= (uint32_t)bytes[15] << 24;
    return event;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct process_event events[256];
    size_t count = 0;

    if (size < 4)
        return 0;
    if (!(data[0] & 1)) {
        decode(data + 4, size - 4,
               (uint64_t)data[1] | (uint64_t)data[2] << 8 | (uint64_t)(data[3] & 1) << 16);
        return 0;
    }
    for (size_t at = 1; at + 16 <= size && count < 256; at += 16, count++)
        events[count] = event_of(data + at, count ? events[count - 1].ns : 1000);
    encode(events, count);
    return 0;
}
