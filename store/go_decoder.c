/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Nothing that the bytes say is believed: sizes are bounded by the number of events, local ids by the
 * dictionary, and at the end every column must be read to its last byte. */
#include <errno.h>

#include "base/cleanup.h"
#include "store/column_packing.h"
#include "store/dictionary.h"
#include "store/go_codec.h"
#include "store/go_model.h"

struct go_decoder {
    struct go_model model;
    struct bytes columns[GO_COLUMNS];
    struct bytes_reader readers[GO_COLUMNS];
    uint32_t *functions;
    size_t function_count;
    uint64_t left; /* events */
    uint64_t ns;
};

DEFINE_CLEANUP(cleanup_decoder, struct go_decoder *, go_decoder_free)

void go_decoder_free(struct go_decoder *decoder)
{
    if (!decoder)
        return;
    for (int i = 0; i < GO_COLUMNS; i++)
        bytes_release(&decoder->columns[i]);
    free(decoder->functions);
    free(decoder);
}

/* ------------------------------------------------------------------------------------------ opening */

static int open_all(struct go_decoder *decoder, struct bytes_reader *reader, uint64_t events)
{
    const uint8_t *dictionary;
    uint64_t size;
    int code;

    decoder->left = reader_varint(reader);
    decoder->ns = reader_varint(reader);
    size = reader_varint(reader);
    dictionary = reader_take(reader, size);
    if (!dictionary || decoder->left != events || events > GO_SEGMENT_EVENTS)
        return -EBADMSG;
    code = dictionary_read(dictionary, size, 1, &decoder->functions, &decoder->function_count);
    for (int i = 0; i < GO_COLUMNS && !code; i++) {
        code = column_unpack(reader, events * VARINT_MAX_BYTES, &decoder->columns[i]);
        decoder->readers[i] = reader_over(decoder->columns[i].data, decoder->columns[i].size);
    }
    return !code && reader_left(reader) ? -EBADMSG : code;
}

int go_decoder_open(const uint8_t *data, size_t size, uint64_t events, struct go_decoder **ret_decoder)
{
    CLEANUP(cleanup_decoder) struct go_decoder *decoder = NULL;
    struct bytes_reader reader = reader_over(data, size);
    uint8_t version = reader_u8(&reader);
    int code;

    if (version != GO_CODEC)
        return version > GO_CODEC ? -ENOTSUP : -EBADMSG;
    decoder = calloc(1, sizeof(*decoder));
    if (!decoder)
        return -ENOMEM;
    code = open_all(decoder, &reader, events);
    if (!code)
        *ret_decoder = take_pointer(decoder);
    return code;
}

/* ------------------------------------------------------------------------------------------ events */

/* A field that is not what was predicted. Its column may be at its end: then the value is wrong, and the
 * reader has failed. */
static uint64_t take_field(struct go_decoder *decoder, enum go_field field)
{
    struct go_recent *recent = &decoder->model.recent[field];
    struct bytes_reader *ranks = &decoder->readers[GO_COLUMN_RANKS + field];
    unsigned rank = reader_u8(ranks);
    uint64_t value;

    if (rank == GO_RANK_NONE) {
        value = recent->literal + unzigzag64(reader_varint(&decoder->readers[GO_COLUMN_LITERALS + field]));
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

/* The function of a local id. */
static bool find_function(const struct go_decoder *decoder, uint64_t local, uint32_t *ret_function)
{
    if (local > decoder->function_count)
        return false;
    *ret_function = local ? decoder->functions[local - 1] : 0;
    return true;
}

/* Whether the values fit the event's fields. */
static bool fill_event(const struct go_decoder *decoder, const uint64_t values[GO_FIELDS],
                       struct go_event *event)
{
    uint64_t head = values[GO_FIELD_HEAD];
    uint32_t function;

    *event = (struct go_event){
        .ns = decoder->ns,
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
        !find_function(decoder, values[GO_FIELD_SITE], &event->site))
        return false;
    if (!go_value_is_function(event->kind))
        return true;
    if (!find_function(decoder, values[GO_FIELD_VALUE], &function))
        return false;
    event->value = function;
    return true;
}

/* Whether a column has failed, or, at the end, has more than was read. */
static bool has_failed(const struct go_decoder *decoder, bool at_end)
{
    for (int i = 0; i < GO_COLUMNS; i++)
        if (decoder->readers[i].failed || (at_end && reader_left(&decoder->readers[i])))
            return true;
    return false;
}

int go_decoder_next(struct go_decoder *decoder, struct go_event *ret_event)
{
    uint64_t values[GO_FIELDS] = {0}, step;
    struct go_event event;
    unsigned missed;

    if (!decoder->left)
        return has_failed(decoder, true) ? -EBADMSG : 1;
    missed = reader_u8(&decoder->readers[GO_COLUMN_MISSES]);
    step = reader_varint(&decoder->readers[GO_COLUMN_NS]);
    get_field(decoder, GO_FIELD_GOROUTINE, missed, values);
    get_field(decoder, GO_FIELD_HEAD, missed, values);
    get_field(decoder, GO_FIELD_SITE, missed, values);
    get_field(decoder, GO_FIELD_OBJECT, missed, values);
    get_field(decoder, GO_FIELD_OTHER, missed, values);
    get_field(decoder, GO_FIELD_VALUE, missed, values);
    get_field(decoder, GO_FIELD_TID, missed, values);
    if (has_failed(decoder, false) || missed >> GO_FIELDS || step > UINT64_MAX - decoder->ns)
        return -EBADMSG;
    decoder->ns += step;
    if (!fill_event(decoder, values, &event))
        return -EBADMSG;
    go_model_learn(&decoder->model, values);
    decoder->left--;
    *ret_event = event;
    return 0;
}
