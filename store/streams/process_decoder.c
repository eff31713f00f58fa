/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Nothing that the bytes say is believed: sizes are bounded by the number of events, local ids by the
 * dictionary, and at the end every column must be read to its last byte.
 */
#include <errno.h>

#include "base/cleanup.h"
#include "store/bytes/column_packing.h"
#include "store/bytes/dictionary.h"
#include "store/streams/process_codec.h"
#include "store/streams/process_model.h"

struct process_decoder {
    struct process_model model;
    struct bytes columns[PROCESS_COLUMNS];
    struct bytes_reader readers[PROCESS_COLUMNS];
    uint32_t *ids; /* of the dictionary */
    size_t id_count;
    uint64_t left; /* events */
    uint64_t ns;   /* of the event before; at first of the first one */
};

DEFINE_CLEANUP(cleanup_decoder, struct process_decoder *, process_decoder_free)

void process_decoder_free(struct process_decoder *decoder)
{
    if (!decoder)
        return;
    for (int i = 0; i < PROCESS_COLUMNS; i++)
        bytes_release(&decoder->columns[i]);
    free(decoder->ids);
    free(decoder);
}

/* ------------------------------------------------------------------------------------------ opening */

static int read_payload(struct process_decoder *decoder, struct bytes_reader *payload, uint64_t events)
{
    const uint8_t *dictionary;
    uint64_t size;
    int code;

    decoder->left = reader_varint(payload);
    decoder->ns = reader_varint(payload);
    size = reader_varint(payload);
    dictionary = reader_take(payload, size);
    if (!dictionary || decoder->left != events || events > PROCESS_SEGMENT_EVENTS || decoder->ns > INT64_MAX)
        return -EBADMSG;
    code = dictionary_read(dictionary, size, 1, &decoder->ids, &decoder->id_count);
    for (int i = 0; i < PROCESS_COLUMNS && !code; i++) {
        code = column_unpack(payload, events * VARINT_MAX_BYTES, &decoder->columns[i]);
        decoder->readers[i] = reader_over(decoder->columns[i].data, decoder->columns[i].size);
    }
    return !code && reader_left(payload) ? -EBADMSG : code;
}

int process_decoder_open(enum process_stream stream, const uint8_t *data, size_t size, uint64_t events,
                         struct process_decoder **ret_decoder)
{
    CLEANUP(cleanup_decoder) struct process_decoder *decoder = NULL;
    struct bytes_reader payload = reader_over(data, size);
    uint8_t version = reader_u8(&payload);
    int code;

    if (version != PROCESS_CODEC)
        return version > PROCESS_CODEC ? -ENOTSUP : -EBADMSG;
    if (reader_u8(&payload) != stream)
        return -EBADMSG;
    decoder = calloc(1, sizeof(*decoder));
    if (!decoder)
        return -ENOMEM;
    decoder->model.traits = process_stream_traits(stream);
    code = read_payload(decoder, &payload, events);
    if (!code)
        *ret_decoder = take_pointer(decoder);
    return code;
}

/* ------------------------------------------------------------------------------------------ events */

/* Whether a column has failed, or, at the end, has more than was read. */
static bool has_failed(const struct process_decoder *decoder, bool at_end)
{
    for (int i = 0; i < PROCESS_COLUMNS; i++)
        if (decoder->readers[i].failed || (at_end && reader_left(&decoder->readers[i])))
            return true;
    return false;
}

/* A field that is not what was predicted. Its column may be at its end: then the value is wrong, and the
 * reader has failed. */
static uint64_t take_field(struct process_decoder *decoder, enum process_field field)
{
    struct process_recent *recent = &decoder->model.recent[field];
    struct bytes_reader *ranks = &decoder->readers[PROCESS_COLUMN_RANKS + field];
    unsigned rank = reader_u8(ranks);
    uint64_t value;

    if (rank == PROCESS_RANK_NONE) {
        value =
            recent->literal + unzigzag64(reader_varint(&decoder->readers[PROCESS_COLUMN_LITERALS + field]));
    } else if (rank < recent->count) {
        value = recent->values[rank];
    } else {
        reader_fail(ranks);
        return 0;
    }
    process_recent_use(recent, value, rank);
    return value;
}

/* The id of a local id, which counts from 1; 0 is 0. False: there is none. */
static bool find_id(const struct process_decoder *decoder, uint64_t local, uint32_t *ret_id)
{
    if (local > decoder->id_count)
        return false;
    *ret_id = local ? decoder->ids[local - 1] : 0;
    return true;
}

/* Whether the values fit the event's fields. */
static bool fill_event(const struct process_decoder *decoder, const uint64_t values[PROCESS_FIELDS],
                       struct process_event *event)
{
    const struct process_stream_traits *traits = decoder->model.traits;
    uint64_t head = values[PROCESS_FIELD_HEAD];
    uint32_t name;

    *event = (struct process_event){
        .ns = decoder->ns,
        .actor = values[PROCESS_FIELD_ACTOR],
        .other = values[PROCESS_FIELD_OTHER],
        .object = values[PROCESS_FIELD_OBJECT],
        .value = (int64_t)values[PROCESS_FIELD_VALUE],
        .place = values[PROCESS_FIELD_PLACE],
        .kind = (uint8_t)process_head_kind(head),
        .detail = (uint8_t)(head >> 8),
        .flags = (uint8_t)head,
    };
    if (head >> 24 || event->actor > traits->actor_max || event->place > traits->place_max ||
        event->detail > traits->detail_max || event->flags > traits->flags_max ||
        !find_id(decoder, values[PROCESS_FIELD_SITE], &event->site))
        return false;
    if (!process_kind_in(traits->value_names, event->kind))
        return true;
    if (!find_id(decoder, values[PROCESS_FIELD_VALUE], &name))
        return false;
    event->value = name;
    return true;
}

int process_decoder_next(struct process_decoder *decoder, struct process_event *ret_event)
{
    uint64_t values[PROCESS_FIELDS] = {0}, step;
    struct process_event event;
    unsigned missed;

    if (!decoder->left)
        return has_failed(decoder, true) ? -EBADMSG : 1;
    missed = reader_u8(&decoder->readers[PROCESS_COLUMN_MISSES]);
    step = reader_varint(&decoder->readers[PROCESS_COLUMN_NS]);
    for (enum process_field field = 0; field < PROCESS_FIELDS; field++) {
        uint64_t prediction = process_model_predict(&decoder->model, field, values);

        values[field] = missed >> field & 1 ? take_field(decoder, field) : prediction;
    }
    if (has_failed(decoder, false) || missed >> PROCESS_FIELDS || step > INT64_MAX - decoder->ns)
        return -EBADMSG;
    decoder->ns += step;
    if (!fill_event(decoder, values, &event))
        return -EBADMSG;
    process_model_learn(&decoder->model, values);
    decoder->left--;
    *ret_event = event;
    return 0;
}
