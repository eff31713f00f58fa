/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The payload's outer form: a header with the lengths of the sections, then the sections. */
#include "store/segment/segment.h"

#include "store/segment/section_packing.h"

/* The sections of a payload, one behind the other; of those that are packed the size is all that is known. */
static void take_sections(struct bytes_reader *reader, struct segment_parts *parts, struct section *packed)
{
    bool is_packed = parts->flags & SEGMENT_PACKED;
    uint64_t sizes[SECTION_COUNT] = {0};

    for (int i = 0; i < SECTION_COUNT; i++)
        if (segment_has_section(parts->flags, i))
            sizes[i] = reader_varint(reader);
    if (is_packed) {
        packed->size = (size_t)reader_varint(reader);
        packed->data = reader_take(reader, packed->size);
    }
    for (int i = 0; i < SECTION_COUNT; i++) {
        if (!is_packed || !section_is_packed(i))
            parts->sections[i].data = reader_take(reader, sizes[i]);
        parts->sections[i].size = (size_t)sizes[i];
    }
}

int segment_parse(const uint8_t *payload, size_t size, struct bytes *room, struct segment_parts *ret_parts)
{
    struct bytes_reader reader = reader_over(payload, size);
    struct segment_parts parts = {0};
    struct section packed = {0};
    uint8_t version = reader_u8(&reader);
    int code = 0;

    parts.codec = reader_u8(&reader);
    parts.flags = reader_u8(&reader);
    if (reader.failed)
        return -EBADMSG;
    if (version != SEGMENT_VERSION || parts.flags & ~SEGMENT_KNOWN_FLAGS)
        return -ENOTSUP;
    take_sections(&reader, &parts, &packed);
    if (reader.failed || reader_left(&reader))
        return -EBADMSG;
    room->size = 0;
    if (parts.flags & SEGMENT_PACKED)
        code = sections_unpack(packed.data, packed.size, room, &parts);
    parts.flags &= (uint8_t)~SEGMENT_PACKED;
    if (!code)
        *ret_parts = parts;
    return code;
}

/* `packed` NULL: they are not. */
static int assemble(const struct segment_parts *parts, const struct bytes *packed, struct bytes *payload)
{
    size_t size = 3 + (SECTION_COUNT + 1) * VARINT_MAX_BYTES + (packed ? packed->size : 0);

    for (int i = 0; i < SECTION_COUNT; i++)
        size += parts->sections[i].size;
    if (bytes_reserve(payload, size))
        return -ENOMEM;
    /* None of these can fail any more. */
    bytes_add_u8(payload, SEGMENT_VERSION);
    bytes_add_u8(payload, parts->codec);
    bytes_add_u8(payload, parts->flags | (packed ? SEGMENT_PACKED : 0u));
    for (int i = 0; i < SECTION_COUNT; i++)
        if (segment_has_section(parts->flags, i))
            bytes_add_varint(payload, parts->sections[i].size);
    if (packed) {
        bytes_add_varint(payload, packed->size);
        bytes_add(payload, packed->data, packed->size);
    }
    for (int i = 0; i < SECTION_COUNT; i++)
        if (!packed || !section_is_packed(i))
            bytes_add(payload, parts->sections[i].data, parts->sections[i].size);
    return 0;
}

int segment_assemble(const struct segment_parts *parts, struct bytes *payload)
{
    return assemble(parts, NULL, payload);
}

int segment_seal(const struct segment_parts *parts, struct bytes *payload)
{
    AUTO_BYTES packed = {0};
    size_t plain = 0;
    int code = sections_pack(parts, &packed);

    if (code && code != -E2BIG)
        return code;
    for (int i = 0; i < SECTION_COUNT; i++)
        plain += section_is_packed(i) ? parts->sections[i].size : 0;
    return assemble(parts, !code && packed.size + 1 < plain ? &packed : NULL, payload);
}

int segment_dictionary(const struct section *section, uint32_t **ret_functions, size_t *ret_count)
{
    return dictionary_read(section->data, section->size, 1, ret_functions, ret_count);
}
