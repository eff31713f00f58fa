/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>

#include "base/cleanup.h"
#include "store/bytes/column_packing.h"
#include "store/streams/event_reader.h"
#include "store/streams/go_codec.h"
#include "store/streams/go_model.h"

struct go_decoder {
    struct go_model model;
    struct event_reader in;
};

static const struct event_format format = {GO_CODEC, GO_COLUMNS, GO_SEGMENT_EVENTS};
_Static_assert(GO_COLUMNS <= EVENT_COLUMNS_MAX, "columns");

DEFINE_CLEANUP(cleanup_decoder, struct go_decoder *, go_decoder_free)

void go_decoder_free(struct go_decoder *decoder)
{
    if (!decoder)
        return;
    event_reader_release(&decoder->in);
    free(decoder);
}

int go_decoder_open(const uint8_t *data, size_t size, uint64_t events, struct go_decoder **ret_decoder)
{
    CLEANUP(cleanup_decoder) struct go_decoder *decoder = calloc(1, sizeof(*decoder));
    int code = decoder ? event_reader_open(&decoder->in, &format, data, size, events) : -ENOMEM;

    if (!code)
        *ret_decoder = take_pointer(decoder);
    return code;
}

/* A field that is not what was predicted. Its column may be at its end: then the value is wrong, and the
 * reader has failed. */
static uint64_t take_field(struct go_decoder *decoder, enum go_field field)
{
    struct go_recent *recent = &decoder->model.recent[field];
    struct bytes_reader *ranks = &decoder->in.readers[GO_COLUMN_RANKS + field];
    unsigned rank = reader_u8(ranks);
    uint64_t value;

    if (rank == GO_RANK_NONE) {
        value = recent->literal + unzigzag64(reader_varint(&decoder->in.readers[GO_COLUMN_LITERALS + field]));
    } else if (rank < recent->count) {
        value = recent->values[rank];
    } else {
        reader_fail(ranks);
        return 0;
    }
    go_recent_use(recent, value, rank);
    return value;
}

static inline __attribute__((always_inline)) void get_field(struct go_decoder *decoder, enum go_field field,
                                                            unsigned missed, uint64_t values[GO_FIELDS])
{
    uint64_t prediction = go_model_predict(&decoder->model, field, values);

    values[field] = missed >> field & 1 ? take_field(decoder, field) : prediction;
}

/* Whether the values fit the event's fields. */
static bool fill_event(const struct go_decoder *decoder, const uint64_t values[GO_FIELDS],
                       struct process_event *event)
{
    uint64_t head = values[GO_FIELD_HEAD];
    uint32_t function;

    *event = (struct process_event){
        .ns = decoder->in.ns,
        .goroutine = values[GO_FIELD_GOROUTINE],
        .other = values[GO_FIELD_OTHER],
        .object = values[GO_FIELD_OBJECT],
        .value = (int64_t)values[GO_FIELD_VALUE],
        .tid = (uint32_t)values[GO_FIELD_TID],
        .kind = (uint8_t)(head >> 16),
        .operation = (uint8_t)(head >> 8),
        .flags = (uint8_t)head,
    };
    if (head >> 24 || values[GO_FIELD_TID] > UINT32_MAX ||
        !event_reader_id(&decoder->in, values[GO_FIELD_SITE], &event->site))
        return false;
    if (!go_value_is_function(event->kind))
        return true;
    if (!event_reader_id(&decoder->in, values[GO_FIELD_VALUE], &function))
        return false;
    event->value = function;
    return true;
}

int go_decoder_next(struct go_decoder *decoder, struct process_event *ret_event)
{
    uint64_t values[GO_FIELDS] = {0}, step;
    struct process_event event;
    unsigned missed;

    if (!decoder->in.left)
        return event_reader_has_failed(&decoder->in, true) ? -EBADMSG : 1;
    missed = reader_u8(&decoder->in.readers[GO_COLUMN_MISSES]);
    step = reader_varint(&decoder->in.readers[GO_COLUMN_NS]);
    get_field(decoder, GO_FIELD_GOROUTINE, missed, values);
    get_field(decoder, GO_FIELD_HEAD, missed, values);
    get_field(decoder, GO_FIELD_SITE, missed, values);
    get_field(decoder, GO_FIELD_OBJECT, missed, values);
    get_field(decoder, GO_FIELD_OTHER, missed, values);
    get_field(decoder, GO_FIELD_VALUE, missed, values);
    get_field(decoder, GO_FIELD_TID, missed, values);
    if (event_reader_has_failed(&decoder->in, false) || missed >> GO_FIELDS ||
        step > UINT64_MAX - decoder->in.ns)
        return -EBADMSG;
    decoder->in.ns += step;
    if (!fill_event(decoder, values, &event))
        return -EBADMSG;
    go_model_learn(&decoder->model, values);
    decoder->in.left--;
    *ret_event = event;
    return 0;
}
