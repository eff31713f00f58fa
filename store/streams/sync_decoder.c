/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>

#include "base/cleanup.h"
#include "store/bytes/column_packing.h"
#include "store/streams/event_reader.h"
#include "store/streams/sync_codec.h"
#include "store/streams/sync_model.h"

struct sync_decoder {
    struct sync_model model;
    struct event_reader in;
};

static const struct event_format format = {SYNC_CODEC, SYNC_FIELDS, SYNC_SEGMENT_EVENTS};
_Static_assert(SYNC_FIELDS <= EVENT_COLUMNS_MAX, "columns");

DEFINE_CLEANUP(cleanup_decoder, struct sync_decoder *, sync_decoder_free)

void sync_decoder_free(struct sync_decoder *decoder)
{
    if (!decoder)
        return;
    event_reader_release(&decoder->in);
    free(decoder);
}

int sync_decoder_open(const uint8_t *data, size_t size, uint64_t events, struct sync_decoder **ret_decoder)
{
    CLEANUP(cleanup_decoder) struct sync_decoder *decoder = calloc(1, sizeof(*decoder));
    int code = decoder ? event_reader_open(&decoder->in, &format, data, size, events) : -ENOMEM;

    if (!code)
        *ret_decoder = take_pointer(decoder);
    return code;
}

/* Whether the values fit the event's fields. */
static bool fill_event(const struct sync_decoder *decoder, const uint64_t values[SYNC_FIELDS],
                       struct process_event *event)
{
    uint64_t head = values[SYNC_FIELD_HEAD];
    uint32_t site;

    if (head >> 10 || (head & 3) > SYNC_END || values[SYNC_FIELD_THREAD] > UINT32_MAX ||
        !event_reader_id(&decoder->in, values[SYNC_FIELD_SITE], &site) ||
        values[SYNC_FIELD_NS] > INT64_MAX - decoder->in.ns)
        return false;
    *event = (struct process_event){
        .ns = decoder->in.ns + values[SYNC_FIELD_NS],
        .object = values[SYNC_FIELD_OBJECT],
        .other = values[SYNC_FIELD_OTHER],
        .result = (int64_t)values[SYNC_FIELD_RESULT],
        .position = values[SYNC_FIELD_POSITION],
        .thread = (uint32_t)values[SYNC_FIELD_THREAD],
        .site = site,
        .kind = (uint8_t)(head >> 2),
        .phase = head & 3,
    };
    return true;
}

int sync_decoder_next(struct sync_decoder *decoder, struct process_event *ret_event)
{
    uint64_t values[SYNC_FIELDS] = {0};
    struct process_event event;

    if (!decoder->in.left)
        return event_reader_has_failed(&decoder->in, true) ? -EBADMSG : 1;
    if (decoder->in.ns > INT64_MAX)
        return -EBADMSG;
    for (enum sync_field field = 0; field < SYNC_FIELDS; field++)
        values[field] = sync_model_expect(&decoder->model, field, values) +
                        unzigzag64(reader_varint(&decoder->in.readers[field]));
    if (event_reader_has_failed(&decoder->in, false) || !fill_event(decoder, values, &event))
        return -EBADMSG;
    decoder->in.ns = event.ns;
    sync_model_learn(&decoder->model, values);
    decoder->in.left--;
    *ret_event = event;
    return 0;
}
