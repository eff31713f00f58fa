/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>

#include "base/cleanup.h"
#include "store/bytes/column_packing.h"
#include "store/bytes/dictionary.h"
#include "store/streams/sync_codec.h"
#include "store/streams/sync_model.h"

#define ROOM_EVENTS 256u /* the columns get room for so many events at once */

struct sync_encoder {
    struct sync_model model;
    struct bytes columns[SYNC_FIELDS];
    struct dictionary sites;
    struct sync_extent extent;
};

struct sync_encoder *sync_encoder_new(void)
{
    return calloc(1, sizeof(struct sync_encoder));
}

void sync_encoder_free(struct sync_encoder *encoder)
{
    if (!encoder)
        return;
    for (int i = 0; i < SYNC_FIELDS; i++)
        bytes_release(&encoder->columns[i]);
    dictionary_release(&encoder->sites);
    free(encoder);
}

void sync_encoder_clear(struct sync_encoder *encoder)
{
    memset(&encoder->model, 0, sizeof(encoder->model));
    for (int i = 0; i < SYNC_FIELDS; i++)
        encoder->columns[i].size = 0;
    dictionary_clear(&encoder->sites);
    encoder->extent = (struct sync_extent){0};
}

struct sync_extent sync_encoder_extent(const struct sync_encoder *encoder)
{
    return encoder->extent;
}

/* ------------------------------------------------------------------------------------------ appending */

/* Once in ROOM_EVENTS events. */
static int make_room(struct sync_encoder *encoder)
{
    size_t bytes = 0;

    for (int i = 0; i < SYNC_FIELDS; i++) {
        bytes += encoder->columns[i].size;
        if (bytes_reserve(&encoder->columns[i], (size_t)ROOM_EVENTS * VARINT_MAX_BYTES))
            return -ENOMEM;
    }
    return bytes >= SYNC_SEGMENT_BYTES ? -E2BIG : 0;
}

/* The local id of a site, 0 of 0. */
static int local_site(struct sync_encoder *encoder, uint32_t site, uint64_t *ret_local)
{
    uint16_t local = site ? dictionary_local(&encoder->sites, site) : 0;
    int code = site && !local ? dictionary_add(&encoder->sites, site, &local) : 0;

    *ret_local = local;
    return code;
}

static void put(struct bytes *column, uint64_t value)
{
    column->size += varint_put(column->data + column->size, value);
}

int sync_encoder_add(struct sync_encoder *encoder, const struct process_event *event)
{
    struct sync_extent *extent = &encoder->extent;
    uint64_t values[SYNC_FIELDS] = {
        [SYNC_FIELD_THREAD] = event->thread,
        [SYNC_FIELD_HEAD] = sync_head(event->kind, event->phase),
        [SYNC_FIELD_OBJECT] = event->object,
        [SYNC_FIELD_OTHER] = event->other,
        [SYNC_FIELD_RESULT] = (uint64_t)event->result,
        [SYNC_FIELD_POSITION] = event->position,
        [SYNC_FIELD_NS] = extent->events ? event->ns - extent->last_ns : 0,
    };
    int code = extent->events >= SYNC_SEGMENT_EVENTS ? -E2BIG : 0;

    if (!code && extent->events % ROOM_EVENTS == 0)
        code = make_room(encoder);
    if (!code)
        code = local_site(encoder, event->site, &values[SYNC_FIELD_SITE]);
    if (code)
        return code;
    for (enum sync_field field = 0; field < SYNC_FIELDS; field++)
        put(&encoder->columns[field],
            zigzag64(values[field] - sync_model_expect(&encoder->model, field, values)));
    sync_model_learn(&encoder->model, values);
    if (!extent->events++)
        extent->first_ns = event->ns;
    extent->last_ns = event->ns;
    return 0;
}

/* ------------------------------------------------------------------------------------------ sealing */

int sync_encoder_seal(const struct sync_encoder *encoder, struct sync_sealed *ret_sealed)
{
    struct sync_sealed sealed = {.extent = encoder->extent, .site_count = encoder->sites.count};

    sealed.sites = calloc(sealed.site_count + 1, sizeof(*sealed.sites));
    if (!sealed.sites || columns_pack(encoder->columns, SYNC_FIELDS, &sealed.columns)) {
        sync_sealed_release(&sealed);
        return -ENOMEM;
    }
    for (size_t i = 0; i < sealed.site_count; i++)
        sealed.sites[i] = encoder->sites.ids[i];
    *ret_sealed = sealed;
    return 0;
}

void sync_sealed_release(struct sync_sealed *sealed)
{
    bytes_release(&sealed->columns);
    free(sealed->sites);
    *sealed = (struct sync_sealed){0};
}

int sync_sealed_write(const struct sync_sealed *sealed, const struct numbering *numbering,
                      struct bytes *payload)
{
    AUTO_FREE uint32_t *ids = calloc(sealed->site_count + 1, sizeof(*ids));
    AUTO_BYTES section = {0};

    if (!ids)
        return -ENOMEM;
    for (size_t i = 0; i < sealed->site_count; i++)
        ids[i] = numbering ? (uint32_t)numbering_id(numbering, sealed->sites[i]) : sealed->sites[i];
    if (dictionary_write(ids, sealed->site_count, &section) || bytes_add_u8(payload, SYNC_CODEC) ||
        bytes_add_varint(payload, sealed->extent.events) ||
        bytes_add_varint(payload, sealed->extent.first_ns) || bytes_add_varint(payload, section.size) ||
        bytes_add(payload, section.data, section.size) ||
        bytes_add(payload, sealed->columns.data, sealed->columns.size))
        return -ENOMEM;
    return 0;
}
