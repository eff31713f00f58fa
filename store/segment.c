/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The payload's outer form: a header with the lengths of the sections, then the sections. */
#include "store/segment.h"

int segment_parse(const uint8_t *payload, size_t size, struct segment_parts *ret_parts)
{
    struct bytes_reader reader = reader_over(payload, size);
    struct segment_parts parts = {0};
    uint8_t version = reader_u8(&reader);
    uint64_t sizes[SECTION_COUNT] = {0};

    parts.codec = reader_u8(&reader);
    parts.flags = reader_u8(&reader);
    if (reader.failed)
        return -EBADMSG;
    if (version != SEGMENT_VERSION || parts.flags & ~SEGMENT_KNOWN_FLAGS)
        return -ENOTSUP;
    for (int i = 0; i < SECTION_COUNT; i++)
        if (segment_has_section(parts.flags, i))
            sizes[i] = reader_varint(&reader);
    for (int i = 0; i < SECTION_COUNT; i++) {
        parts.sections[i].data = reader_take(&reader, sizes[i]);
        parts.sections[i].size = (size_t)sizes[i];
    }
    if (reader.failed || reader_left(&reader))
        return -EBADMSG;
    *ret_parts = parts;
    return 0;
}

int segment_assemble(const struct segment_parts *parts, struct bytes *payload)
{
    size_t size = 3 + SECTION_COUNT * VARINT_MAX_BYTES;

    for (int i = 0; i < SECTION_COUNT; i++)
        size += parts->sections[i].size;
    if (bytes_reserve(payload, size))
        return -ENOMEM;
    /* None of these can fail any more. */
    bytes_add_u8(payload, SEGMENT_VERSION);
    bytes_add_u8(payload, parts->codec);
    bytes_add_u8(payload, parts->flags);
    for (int i = 0; i < SECTION_COUNT; i++)
        if (segment_has_section(parts->flags, i))
            payload->size += varint_put(payload->data + payload->size, parts->sections[i].size);
    for (int i = 0; i < SECTION_COUNT; i++)
        bytes_add(payload, parts->sections[i].data, parts->sections[i].size);
    return 0;
}

int segment_dictionary(const struct section *section, uint32_t **ret_functions, size_t *ret_count)
{
    return dictionary_read(section->data, section->size, 1, ret_functions, ret_count);
}
