/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Segments of process events. The input's first byte says what the rest is: bit 1 which stream. Bit 0 is not
 * set: a payload; the next three bytes are the number of events that its row would declare, and what decodes
 * is encoded anew and has to come back. It is set: events, 16 bytes each, that are encoded and have to come
 * back.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "store/streams/process_codec.h"
#include "store/streams/process_streams.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool same(const struct process_event *a, const struct process_event *b)
{
    return a->ns == b->ns && a->actor == b->actor && a->other == b->other && a->object == b->object &&
           a->value == b->value && a->site == b->site && a->place == b->place && a->kind == b->kind &&
           a->detail == b->detail && a->flags == b->flags;
}

/* The payload of what the encoder has must give `events`, which begin with what is there. */
static void expect(enum process_stream stream, const struct process_encoder *encoder,
                   const struct process_event *events, size_t count)
{
    struct bytes payload = {0}, list = {0};
    struct process_decoder *decoder = NULL;
    struct process_sealed sealed;
    struct process_event event;

    if (process_encoder_seal(encoder, &sealed) || process_sealed_write(&sealed, NULL, &payload, &list) ||
        process_decoder_open(stream, payload.data, payload.size, count, &decoder))
        abort();
    for (size_t i = 0; i < count; i++)
        if (process_decoder_next(decoder, &event) || !same(&event, &events[i]))
            abort();
    if (process_decoder_next(decoder, &event) != 1)
        abort();
    process_decoder_free(decoder);
    process_sealed_release(&sealed);
    bytes_release(&payload);
    bytes_release(&list);
}

static void encode(enum process_stream stream, const struct process_event *events, size_t count)
{
    struct process_encoder *encoder = process_encoder_new(stream);
    size_t taken = 0;

    while (encoder && taken < count && process_encoder_add(encoder, &events[taken]) == 0)
        taken++;
    if (encoder)
        expect(stream, encoder, events, taken);
    process_encoder_free(encoder);
}

static void decode(enum process_stream stream, const uint8_t *data, size_t size, uint64_t count)
{
    struct process_decoder *decoder = NULL;
    struct process_event *events = NULL;
    size_t decoded = 0;
    int code;

    if (process_decoder_open(stream, data, size, count, &decoder))
        return;
    events = calloc(count + 1, sizeof(*events));
    if (!events)
        abort();
    while ((code = process_decoder_next(decoder, &events[decoded])) == 0)
        if (++decoded > count || (decoded > 1 && events[decoded - 1].ns < events[decoded - 2].ns))
            abort();
    if (code == 1 && decoded != count)
        abort();
    process_decoder_free(decoder);
    encode(stream, events, decoded);
    free(events);
}

static struct process_event event_of(enum process_stream stream, const uint8_t bytes[16], uint64_t ns)
{
    struct process_event event = {
        .ns = ns + bytes[0],
        .kind = bytes[1],
        .detail = stream == PROCESS_STREAM_GO ? bytes[2] : bytes[2] % 3,
        .flags = stream == PROCESS_STREAM_GO ? bytes[3] : 0,
        .actor = bytes[4],
        .other = bytes[5],
        .site = bytes[6],
        .place = bytes[7],
        .object = (uint64_t)bytes[8] << 56 | bytes[9],
    };
    uint32_t value;

    memcpy(&value, bytes + 10, sizeof(value));
    event.value = process_kind_in(process_stream_traits(stream)->value_names, event.kind)
                      ? value
                      : (int64_t)value - bytes[14];
    event.site |= (uint32_t)bytes[15] << 24;
    return event;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct process_event events[256];
    enum process_stream stream = size && data[0] & 2 ? PROCESS_STREAM_SYNC : PROCESS_STREAM_GO;
    size_t count = 0;

    if (size < 4)
        return 0;
    if (!(data[0] & 1)) {
        decode(stream, data + 4, size - 4,
               (uint64_t)data[1] | (uint64_t)data[2] << 8 | (uint64_t)(data[3] & 1) << 16);
        return 0;
    }
    for (size_t at = 1; at + 16 <= size && count < 256; at += 16, count++)
        events[count] = event_of(stream, data + at, count ? events[count - 1].ns : 1000);
    encode(stream, events, count);
    return 0;
}
