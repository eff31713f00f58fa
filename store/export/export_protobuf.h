/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The wire format of protobuf, as far as it is written: varint fields (wire type 0) and fields with a length
 * (wire type 2). -ENOMEM is the only failure.
 */
#ifndef TRACESTORE_EXPORT_PROTOBUF_H
#define TRACESTORE_EXPORT_PROTOBUF_H

#include <string.h>

#include "store/bytes/bytes.h"

static inline int protobuf_number(struct bytes *message, unsigned field, uint64_t value)
{
    uint8_t bytes[2 * VARINT_MAX_BYTES];
    size_t size = varint_put(bytes, (uint64_t)field << 3);

    size += varint_put(bytes + size, value);
    return bytes_add(message, bytes, size);
}

static inline int protobuf_bytes(struct bytes *message, unsigned field, const void *data, size_t size)
{
    uint8_t head[2 * VARINT_MAX_BYTES];
    size_t head_size = varint_put(head, (uint64_t)field << 3 | 2);
    int r;

    head_size += varint_put(head + head_size, size);
    r = bytes_add(message, head, head_size);
    return r ? r : bytes_add(message, data, size);
}

static inline int protobuf_text(struct bytes *message, unsigned field, const char *text)
{
    return protobuf_bytes(message, field, text, strlen(text));
}

static inline int protobuf_message(struct bytes *message, unsigned field, const struct bytes *inner)
{
    return protobuf_bytes(message, field, inner->data, inner->size);
}

#endif
