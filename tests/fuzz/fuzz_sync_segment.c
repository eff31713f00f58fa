/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Segments of synchronisation events: the first two bytes are the number of events that the row would
 * declare, the rest is a payload. What decodes is encoded anew and has to come back. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "store/streams/sync_codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool same(const struct process_event *a, const struct process_event *b)
{
    return a->ns == b->ns && a->object == b->object && a->other == b->other && a->result == b->result &&
           a->position == b->position && a->thread == b->thread && a->site == b->site && a->kind == b->kind &&
           a->phase == b->phase;
}

static void expect(const struct sync_encoder *encoder, const struct process_event *events, size_t count)
{
    struct bytes payload = {0};
    struct sync_decoder *decoder = NULL;
    struct sync_sealed sealed;
    struct process_event event;

    if (sync_encoder_seal(encoder, &sealed) || sync_sealed_write(&sealed, NULL, &payload) ||
        sync_decoder_open(payload.data, payload.size, count, &decoder))
        abort();
    for (size_t i = 0; i < count; i++)
        if (sync_decoder_next(decoder, &event) || !same(&event, &events[i]))
            abort();
    if (sync_decoder_next(decoder, &event) != 1)
        abort();
    sync_decoder_free(decoder);
    sync_sealed_release(&sealed);
    bytes_release(&payload);
}

static void encode(const struct process_event *events, size_t count)
{
    struct sync_encoder *encoder = sync_encoder_new();
    size_t taken = 0;

    while (encoder && taken < count && sync_encoder_add(encoder, &events[taken]) == 0)
        taken++;
    if (encoder)
        expect(encoder, events, taken);
    sync_encoder_free(encoder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sync_decoder *decoder = NULL;
    struct process_event *events;
    size_t count = size < 2 ? 0 : (size_t)data[0] | (size_t)data[1] << 8, decoded = 0;
    int code;

    if (size < 2 || sync_decoder_open(data + 2, size - 2, count, &decoder))
        return 0;
    events = calloc(count + 1, sizeof(*events));
    if (!events)
        abort();
    while ((code = sync_decoder_next(decoder, &events[decoded])) == 0)
        if (++decoded > count || (decoded > 1 && events[decoded - 1].ns < events[decoded - 2].ns))
            abort();
    if (code == 1 && decoded != count)
        abort();
    sync_decoder_free(decoder);
    encode(events, decoded);
    free(events);
    return 0;
}
