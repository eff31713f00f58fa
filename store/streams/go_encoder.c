/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>

#include "base/cleanup.h"
#include "store/bytes/column_packing.h"
#include "store/bytes/dictionary.h"
#include "store/segment/call_list.h"
#include "store/streams/go_codec.h"
#include "store/streams/go_model.h"

#define ROOM_EVENTS 256u /* the columns get room for so many events at once */

struct go_encoder {
    struct go_model model;
    struct bytes columns[GO_COLUMNS];
    struct dictionary functions;
    uint32_t *named; /* events that name the function of local id i + 1 */
    size_t named_capacity;
    uint64_t events, first_ns, last_ns;
};

struct go_encoder *go_encoder_new(void)
{
    return calloc(1, sizeof(struct go_encoder));
}

void go_encoder_free(struct go_encoder *encoder)
{
    if (!encoder)
        return;
    for (int i = 0; i < GO_COLUMNS; i++)
        bytes_release(&encoder->columns[i]);
    dictionary_release(&encoder->functions);
    free(encoder->named);
    free(encoder);
}

void go_encoder_clear(struct go_encoder *encoder)
{
    memset(&encoder->model, 0, sizeof(encoder->model));
    for (int i = 0; i < GO_COLUMNS; i++)
        encoder->columns[i].size = 0;
    dictionary_clear(&encoder->functions);
    encoder->events = encoder->first_ns = encoder->last_ns = 0;
}

struct go_extent go_encoder_extent(const struct go_encoder *encoder)
{
    struct go_extent extent = {encoder->events, encoder->first_ns, encoder->last_ns, 0};

    for (int i = 0; i < GO_COLUMNS; i++)
        extent.bytes += encoder->columns[i].size;
    return extent;
}

/* ------------------------------------------------------------------------------------------ appending */

static int reserve_columns(struct go_encoder *encoder)
{
    for (int i = 0; i < GO_COLUMNS; i++)
        if (bytes_reserve(&encoder->columns[i], (size_t)ROOM_EVENTS * VARINT_MAX_BYTES))
            return -ENOMEM;
    return 0;
}

/* The local id of a function, 0 of 0; counts the event. -E2BIG, -ENOMEM: then it is not counted. */
static int name_function(struct go_encoder *encoder, uint32_t function, uint64_t *ret_local)
{
    uint16_t local = function ? dictionary_local(&encoder->functions, function) : 0;

    if (function && !local) {
        int code;

        if (array_reserve(&encoder->named, &encoder->named_capacity, encoder->functions.count + 1))
            return -ENOMEM;
        code = dictionary_add(&encoder->functions, function, &local);
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
put_field(struct go_encoder *encoder, enum go_field field, const uint64_t values[GO_FIELDS])
{
    struct go_recent *recent = &encoder->model.recent[field];
    struct bytes *ranks = &encoder->columns[GO_COLUMN_RANKS + field];
    unsigned rank;

    if (go_model_predict(&encoder->model, field, values) == values[field])
        return 0;
    rank = go_recent_rank(recent, values[field]);
    ranks->data[ranks->size++] = (uint8_t)rank;
    if (rank == GO_RANK_NONE)
        put_varint(&encoder->columns[GO_COLUMN_LITERALS + field], zigzag64(values[field] - recent->literal));
    go_recent_use(recent, values[field], rank);
    return 1;
}

static void put_event(struct go_encoder *encoder, uint64_t ns, const uint64_t values[GO_FIELDS])
{
    struct bytes *misses = &encoder->columns[GO_COLUMN_MISSES];
    unsigned missed = put_field(encoder, GO_FIELD_GOROUTINE, values) << GO_FIELD_GOROUTINE;

    missed |= put_field(encoder, GO_FIELD_HEAD, values) << GO_FIELD_HEAD;
    missed |= put_field(encoder, GO_FIELD_SITE, values) << GO_FIELD_SITE;
    missed |= put_field(encoder, GO_FIELD_OBJECT, values) << GO_FIELD_OBJECT;
    missed |= put_field(encoder, GO_FIELD_OTHER, values) << GO_FIELD_OTHER;
    missed |= put_field(encoder, GO_FIELD_VALUE, values) << GO_FIELD_VALUE;
    missed |= put_field(encoder, GO_FIELD_TID, values) << GO_FIELD_TID;
    misses->data[misses->size++] = (uint8_t)missed;
    put_varint(&encoder->columns[GO_COLUMN_NS], ns - encoder->last_ns);
    go_model_learn(&encoder->model, values);
}

static bool is_full(const struct go_encoder *encoder)
{
    return encoder->events >= GO_SEGMENT_EVENTS ||
           (encoder->events % ROOM_EVENTS == 0 && go_encoder_extent(encoder).bytes >= GO_SEGMENT_BYTES);
}

int go_encoder_add(struct go_encoder *encoder, const struct process_event *event)
{
    uint64_t values[GO_FIELDS] = {
        [GO_FIELD_GOROUTINE] = event->goroutine,
        [GO_FIELD_HEAD] = (uint64_t)event->kind << 16 | (uint64_t)event->operation << 8 | event->flags,
        [GO_FIELD_OBJECT] = event->object,
        [GO_FIELD_OTHER] = event->other,
        [GO_FIELD_VALUE] = (uint64_t)event->value,
        [GO_FIELD_TID] = event->tid,
    };
    bool function = go_value_is_function(event->kind);
    int code = is_full(encoder) ? -E2BIG : 0;

    if (!code && encoder->events % ROOM_EVENTS == 0)
        code = reserve_columns(encoder);
    if (!code)
        code = name_function(encoder, event->site, &values[GO_FIELD_SITE]);
    if (!code && function)
        code = name_function(encoder, (uint32_t)event->value, &values[GO_FIELD_VALUE]);
    if (code)
        return code;
    if (values[GO_FIELD_SITE])
        encoder->named[values[GO_FIELD_SITE] - 1]++;
    if (function && values[GO_FIELD_VALUE])
        encoder->named[values[GO_FIELD_VALUE] - 1]++;
    if (!encoder->events)
        encoder->first_ns = encoder->last_ns = event->ns;
    put_event(encoder, event->ns, values);
    encoder->last_ns = event->ns;
    encoder->events++;
    return 0;
}

/* ------------------------------------------------------------------------------------------ sealing */

int go_encoder_seal(const struct go_encoder *encoder, struct go_sealed *ret_sealed)
{
    struct go_sealed sealed = {.extent = go_encoder_extent(encoder),
                               .function_count = encoder->functions.count};

    sealed.functions = calloc(sealed.function_count + 1, sizeof(*sealed.functions));
    if (!sealed.functions || columns_pack(encoder->columns, GO_COLUMNS, &sealed.columns)) {
        go_sealed_release(&sealed);
        return -ENOMEM;
    }
    for (size_t i = 0; i < sealed.function_count; i++)
        sealed.functions[i] = (struct function_calls){encoder->functions.ids[i], encoder->named[i]};
    *ret_sealed = sealed;
    return 0;
}

void go_sealed_release(struct go_sealed *sealed)
{
    bytes_release(&sealed->columns);
    free(sealed->functions);
    *sealed = (struct go_sealed){0};
}

/* The dictionary, behind its size. */
static int write_dictionary(const struct function_calls *functions, size_t count, struct bytes *out)
{
    AUTO_FREE uint32_t *ids = calloc(count + 1, sizeof(*ids));
    AUTO_BYTES section = {0};

    if (!ids)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        ids[i] = functions[i].function;
    if (dictionary_write(ids, count, &section) || bytes_add_varint(out, section.size) ||
        bytes_add(out, section.data, section.size))
        return -ENOMEM;
    return 0;
}

int go_sealed_write(const struct go_sealed *sealed, const struct numbering *numbering, struct bytes *payload,
                    struct bytes *list)
{
    AUTO_FREE struct function_calls *functions = calloc(sealed->function_count + 1, sizeof(*functions));

    if (!functions)
        return -ENOMEM;
    for (size_t i = 0; i < sealed->function_count; i++) {
        functions[i] = sealed->functions[i];
        if (numbering)
            functions[i].function = (uint32_t)numbering_id(numbering, functions[i].function);
    }
    if (bytes_add_u8(payload, GO_CODEC) || bytes_add_varint(payload, sealed->extent.events) ||
        bytes_add_varint(payload, sealed->extent.first_ns) ||
        write_dictionary(functions, sealed->function_count, payload) ||
        bytes_add(payload, sealed->columns.data, sealed->columns.size))
        return -ENOMEM;
    return call_list_pack(functions, sealed->function_count, list); /* puts them in order */
}
