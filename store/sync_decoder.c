/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Nothing that the bytes say is believed: sizes are bounded by the number of events, local ids by the
 * dictionary, and at the end every column must be read to its last byte. */
#include <errno.h>

#include "base/cleanup.h"
#include "store/column_packing.h"
#include "store/dictionary.h"
#include "store/sync_codec.h"
#include "store/sync_model.h"

struct sync_decoder {
    struct sync_model model;
    struct bytes columns[SYNC_FIELDS];
    struct bytes_reader readers[SYNC_FIELDS];
    uint32_t *sites;
    size_t site_count;
    uint64_t left; /* events */
    uint64_t ns;
};

DEFINE_CLEANUP(cleanup_decoder, struct sync_decoder *, sync_decoder_free)

void sync_decoder_free(struct sync_decoder *decoder)
{
    if (!decoder)
        return;
    for (int i = 0; i < SYNC_FIELDS; i++)
        bytes_release(&decoder->columns[i]);
    free(decoder->sites);
    free(decoder);
}

static int open_all(struct sync_decoder *decoder, struct bytes_reader *reader, uint64_t events)
{
    const uint8_t *dictionary;
    uint64_t size;
    int code;

    decoder->left = reader_varint(reader);
    decoder->ns = reader_varint(reader);
    size = reader_varint(reader);
    dictionary = reader_take(reader, size);
    if (!dictionary || decoder->left != events || events > SYNC_SEGMENT_EVENTS)
        return -EBADMSG;
    code = dictionary_read(dictionary, size, 1, &decoder->sites, &decoder->site_count);
    for (int i = 0; i < SYNC_FIELDS && !code; i++) {
        code = column_unpack(reader, events * VARINT_MAX_BYTES, &decoder->columns[i]);
        decoder->readers[i] = reader_over(decoder->columns[i].data, decoder->columns[i].size);
    }
    return !code && reader_left(reader) ? -EBADMSG : code;
}

int sync_decoder_open(const uint8_t *data, size_t size, uint64_t events, struct sync_decoder **ret_decoder)
{
    CLEANUP(cleanup_decoder) struct sync_decoder *decoder = NULL;
    struct bytes_reader reader = reader_over(data, size);
    uint8_t version = reader_u8(&reader);
    int code;

    if (version != SYNC_CODEC)
        return version > SYNC_CODEC ? -ENOTSUP : -EBADMSG;
    decoder = calloc(1, sizeof(*decoder));
    if (!decoder)
        return -ENOMEM;
    code = open_all(decoder, &reader, events);
    if (!code)
        *ret_decoder = take_pointer(decoder);
    return code;
}

/* ------------------------------------------------------------------------------------------ events */

/* Whether the values fit the event's fields. */
static bool fill_event(const struct sync_decoder *decoder, const uint64_t values[SYNC_FIELDS],
                       struct sync_event *event)
{
    uint64_t head = values[SYNC_FIELD_HEAD], site = values[SYNC_FIELD_SITE];

    if (head >> 10 || (head & 3) > SYNC_END || values[SYNC_FIELD_THREAD] > UINT32_MAX ||
        site > decoder->site_count || values[SYNC_FIELD_NS] > INT64_MAX - decoder->ns)
        return false;
    *event = (struct sync_event){
        .ns = decoder->ns + values[SYNC_FIELD_NS],
        .object = values[SYNC_FIELD_OBJECT],
        .other = values[SYNC_FIELD_OTHER],
        .result = (int64_t)values[SYNC_FIELD_RESULT],
        .position = values[SYNC_FIELD_POSITION],
        .thread = (uint32_t)values[SYNC_FIELD_THREAD],
        .site = site ? decoder->sites[site - 1] : 0,
        .kind = (uint8_t)(head >> 2),
        .phase = head & 3,
    };
    return true;
}

/* Whether a column has failed, or, at the end, has more than was read. */
static bool has_failed(const struct sync_decoder *decoder, bool at_end)
{
    for (int i = 0; i < SYNC_FIELDS; i++)
        if (decoder->readers[i].failed || (at_end && reader_left(&decoder->readers[i])))
            return true;
    return false;
}

int sync_decoder_next(struct sync_decoder *decoder, struct sync_event *ret_event)
{
    uint64_t values[SYNC_FIELDS] = {0};
    struct sync_event event;

    if (!decoder->left)
        return has_failed(decoder, true) ? -EBADMSG : 1;
    if (decoder->ns > INT64_MAX)
        return -EBADMSG;
    for (enum sync_field field = 0; field < SYNC_FIELDS; field++)
        values[field] = sync_model_expect(&decoder->model, field, values) +
                        unzigzag64(reader_varint(&decoder->readers[field]));
    if (has_failed(decoder, false) || !fill_event(decoder, values, &event))
        return -EBADMSG;
    decoder->ns = event.ns;
    sync_model_learn(&decoder->model, values);
    decoder->left--;
    *ret_event = event;
    return 0;
}
