/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>

#include "base/cleanup.h"
#include "store/bytes/column_packing.h"
#include "store/bytes/dictionary.h"
#include "store/segment/call_list.h"
#include "store/streams/process_codec.h"
#include "store/streams/process_model.h"

#define RESERVED_EVENTS 256u /* space in the columns is reserved for so many events at once */

struct process_encoder {
    struct process_model model;
    enum process_stream stream;
    struct bytes columns[PROCESS_COLUMNS];
    struct dictionary names;
    uint32_t *named; /* events that name the id of local id i + 1 */
    size_t named_capacity;
    uint64_t events, first_ns, last_ns;
};

struct process_encoder *process_encoder_new(enum process_stream stream)
{
    struct process_encoder *encoder = calloc(1, sizeof(*encoder));

    if (!encoder)
        return NULL;
    encoder->stream = stream;
    encoder->model.traits = process_stream_traits(stream);
    return encoder;
}

void process_encoder_free(struct process_encoder *encoder)
{
    if (!encoder)
        return;
    for (int i = 0; i < PROCESS_COLUMNS; i++)
        bytes_release(&encoder->columns[i]);
    dictionary_release(&encoder->names);
    free(encoder->named);
    free(encoder);
}

void process_encoder_clear(struct process_encoder *encoder)
{
    memset(&encoder->model, 0, sizeof(encoder->model));
    encoder->model.traits = process_stream_traits(encoder->stream);
    for (int i = 0; i < PROCESS_COLUMNS; i++)
        encoder->columns[i].size = 0;
    dictionary_clear(&encoder->names);
    encoder->events = encoder->first_ns = encoder->last_ns = 0;
}

struct process_extent process_encoder_extent(const struct process_encoder *encoder)
{
    struct process_extent extent = {encoder->events, encoder->first_ns, encoder->last_ns, 0};

    for (int i = 0; i < PROCESS_COLUMNS; i++)
        extent.bytes += encoder->columns[i].size;
    return extent;
}

/* ------------------------------------------------------------------------------------------ appending */

static int reserve_columns(struct process_encoder *encoder)
{
    for (int i = 0; i < PROCESS_COLUMNS; i++)
        if (bytes_reserve(&encoder->columns[i], (size_t)RESERVED_EVENTS * VARINT_MAX_BYTES))
            return -ENOMEM;
    return 0;
}

/* The local id of a name, 0 of 0. -E2BIG, -ENOMEM. */
static int local_name(struct process_encoder *encoder, uint32_t name, uint64_t *ret_local)
{
    uint16_t local = name ? dictionary_local(&encoder->names, name) : 0;

    if (name && !local) {
        int code;

        if (array_reserve(&encoder->named, &encoder->named_capacity, encoder->names.count + 1))
            return -ENOMEM;
        code = dictionary_add(&encoder->names, name, &local);
        if (code)
            return code;
        encoder->named[local - 1] = 0;
    }
    *ret_local = local;
    return 0;
}

static void put_varint(struct bytes *column, uint64_t value)
{
    column->size += varint_put(column->data + column->size, value);
}

/* Codes a field. 1: it is not what was predicted. */
static inline __attribute__((always_inline)) unsigned
put_field(struct process_encoder *encoder, enum process_field field, const uint64_t values[PROCESS_FIELDS])
{
    struct process_recent *recent = &encoder->model.recent[field];
    struct bytes *ranks = &encoder->columns[PROCESS_COLUMN_RANKS + field];
    unsigned rank;

    if (process_model_predict(&encoder->model, field, values) == values[field])
        return 0;
    rank = process_recent_rank(recent, values[field]);
    ranks->data[ranks->size++] = (uint8_t)rank;
    if (rank == PROCESS_RANK_NONE)
        put_varint(&encoder->columns[PROCESS_COLUMN_LITERALS + field],
                   zigzag64(values[field] - recent->literal));
    process_recent_use(recent, values[field], rank);
    return 1;
}

static void put_event(struct process_encoder *encoder, uint64_t ns, const uint64_t values[PROCESS_FIELDS])
{
    struct bytes *misses = &encoder->columns[PROCESS_COLUMN_MISSES];
    unsigned missed = 0;

#pragma GCC unroll 7 /* so that each field has its prediction only: a quarter less time */
    for (enum process_field field = 0; field < PROCESS_FIELDS; field++)
        missed |= put_field(encoder, field, values) << field;
    misses->data[misses->size++] = (uint8_t)missed;
    put_varint(&encoder->columns[PROCESS_COLUMN_NS], ns - encoder->last_ns);
    process_model_learn(&encoder->model, values);
}

static bool is_full(const struct process_encoder *encoder)
{
    return encoder->events >= PROCESS_SEGMENT_EVENTS ||
           (encoder->events % RESERVED_EVENTS == 0 &&
            process_encoder_extent(encoder).bytes >= PROCESS_SEGMENT_BYTES);
}

int process_encoder_add(struct process_encoder *encoder, const struct process_event *event)
{
    uint64_t values[PROCESS_FIELDS] = {
        [PROCESS_FIELD_ACTOR] = event->actor,
        [PROCESS_FIELD_HEAD] = (uint64_t)event->kind << 16 | (uint64_t)event->detail << 8 | event->flags,
        [PROCESS_FIELD_OBJECT] = event->object,
        [PROCESS_FIELD_OTHER] = event->other,
        [PROCESS_FIELD_VALUE] = (uint64_t)event->value,
        [PROCESS_FIELD_PLACE] = event->place,
    };
    bool value_is_name = process_kind_in(encoder->model.traits->value_names, event->kind);
    int code = is_full(encoder) ? -E2BIG : 0;

    if (!code && encoder->events % RESERVED_EVENTS == 0)
        code = reserve_columns(encoder);
    if (!code)
        code = local_name(encoder, event->site, &values[PROCESS_FIELD_SITE]);
    if (!code && value_is_name)
        code = local_name(encoder, (uint32_t)event->value, &values[PROCESS_FIELD_VALUE]);
    if (code)
        return code;
    if (values[PROCESS_FIELD_SITE])
        encoder->named[values[PROCESS_FIELD_SITE] - 1]++;
    if (value_is_name && values[PROCESS_FIELD_VALUE])
        encoder->named[values[PROCESS_FIELD_VALUE] - 1]++;
    if (!encoder->events)
        encoder->first_ns = encoder->last_ns = event->ns;
    put_event(encoder, event->ns, values);
    encoder->last_ns = event->ns;
    encoder->events++;
    return 0;
}

/* ------------------------------------------------------------------------------------------ sealing */

int process_encoder_seal(const struct process_encoder *encoder, struct process_sealed *ret_sealed)
{
    struct process_sealed sealed = {.stream = encoder->stream,
                                    .extent = process_encoder_extent(encoder),
                                    .name_count = encoder->names.count};

    sealed.names = calloc(sealed.name_count + 1, sizeof(*sealed.names));
    if (!sealed.names || columns_pack(encoder->columns, PROCESS_COLUMNS, &sealed.columns)) {
        process_sealed_release(&sealed);
        return -ENOMEM;
    }
    for (size_t i = 0; i < sealed.name_count; i++)
        sealed.names[i] = (struct function_calls){encoder->names.ids[i], encoder->named[i]};
    *ret_sealed = sealed;
    return 0;
}

void process_sealed_release(struct process_sealed *sealed)
{
    bytes_release(&sealed->columns);
    free(sealed->names);
    *sealed = (struct process_sealed){0};
}

/* The dictionary, behind its size. */
static int write_dictionary(const struct function_calls *names, size_t count, struct bytes *out)
{
    AUTO_FREE uint32_t *ids = calloc(count + 1, sizeof(*ids));
    AUTO_BYTES section = {0};

    if (!ids)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        ids[i] = names[i].function;
    if (dictionary_write(ids, count, &section) || bytes_add_varint(out, section.size) ||
        bytes_add(out, section.data, section.size))
        return -ENOMEM;
    return 0;
}

int process_sealed_write(const struct process_sealed *sealed, const struct numbering *numbering,
                         struct bytes *payload, struct bytes *list)
{
    AUTO_FREE struct function_calls *names = calloc(sealed->name_count + 1, sizeof(*names));

    if (!names)
        return -ENOMEM;
    for (size_t i = 0; i < sealed->name_count; i++) {
        names[i] = sealed->names[i];
        if (numbering)
            names[i].function = (uint32_t)numbering_id(numbering, names[i].function);
    }
    if (bytes_add_u8(payload, PROCESS_CODEC) || bytes_add_u8(payload, (uint8_t)sealed->stream) ||
        bytes_add_varint(payload, sealed->extent.events) ||
        bytes_add_varint(payload, sealed->extent.first_ns) ||
        write_dictionary(names, sealed->name_count, payload) ||
        bytes_add(payload, sealed->columns.data, sealed->columns.size))
        return -ENOMEM;
    return call_list_pack(names, sealed->name_count, list); /* puts them in order */
}
