/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The decoders of what a store holds as bytes. The input's first byte says what the rest is: even, the
 * payload of a segment; odd, a journal row. The next two are the number of events that a segments row would
 * declare.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "store/segment/journal.h"
#include "store/segment/segment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What holds of every event that a decoder gives, whatever the bytes. */
static void decode(const struct segment_parts *parts, uint64_t first_seq, uint64_t event_count)
{
    struct segment_decoder *decoder;
    struct event event;
    uint64_t events = 0;
    size_t depth;
    int code;

    if (segment_decoder_open(parts, first_seq, event_count, 0, true, &decoder))
        return;
    while ((code = segment_decoder_next(decoder, &event)) == 0) {
        const struct open_call *open = segment_decoder_open_calls(decoder, &depth);

        if (event.seq != first_seq + events++ || event.kind > EVENT_LOST || !event.function)
            abort();
        if (event.kind == EVENT_CALL && depth && open[depth - 1].seq != event.seq)
            abort();
        if (event.call_site && (event.kind != EVENT_CALL || !(parts->flags & SEGMENT_CALL_SITES)))
            abort();
        if (event.kind == EVENT_CALL && depth && open[depth - 1].site != event.call_site)
            abort();
        if (event.assumed && (event.kind != EVENT_CALL || !(parts->flags & SEGMENT_ASSUMED)))
            abort();
        if (event.kind == EVENT_CALL && depth && open[depth - 1].assumed != event.assumed)
            abort();
        if (event.kind == EVENT_RETURN && segment_decoder_ended_call(decoder)->seq >= event.seq)
            abort();
        if (event.ns > INT64_MAX || event.ns + event.ns_error > INT64_MAX)
            abort();
    }
    if (code == 1 && events != event_count)
        abort();
    segment_decoder_free(decoder);
}

static void read_row(const uint8_t *data, size_t size)
{
    struct journal_tail tail = {0};
    struct bytes_reader reader;
    struct journal_chunk chunk;

    if (journal_row_open(data, size, &reader))
        return;
    while (journal_next_chunk(&reader, 0, &chunk) == 0) {
        AUTO_BYTES room = {0};
        struct segment_parts parts;

        if (chunk.event_count > UINT16_MAX || journal_tail_apply(&tail, &chunk))
            continue;
        parts = journal_tail_parts(&tail);
        decode(&parts, tail.first_seq, tail.event_count);
    }
    journal_tail_release(&tail);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_BYTES room = {0};
    struct segment_parts parts;

    if (size < 3)
        return 0;
    if (data[0] & 1)
        read_row(data + 3, size - 3);
    else if (segment_parse(data + 3, size - 3, &room, &parts) == 0)
        decode(&parts, 1000, (uint64_t)data[1] | (uint64_t)data[2] << 8);
    return 0;
}
