/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Byte strings: a growing buffer to write to, and a cursor to read from that never leaves its bytes. Numbers
 * are LEB128 varints: seven bits a byte, least significant first, the top bit set on all bytes but the last.
 */
#ifndef TRACESTORE_BYTES_H
#define TRACESTORE_BYTES_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define VARINT_MAX_BYTES 10

struct bytes {
    uint8_t *data;
    size_t size, capacity;
};

static inline void bytes_release(struct bytes *bytes)
{
    free(bytes->data);
    *bytes = (struct bytes){0};
}

#define AUTO_BYTES __attribute__((cleanup(bytes_release))) struct bytes

static inline int bytes_reserve(struct bytes *bytes, size_t more)
{
    return array_reserve(&bytes->data, &bytes->capacity, bytes->size + more);
}

static inline int bytes_add(struct bytes *bytes, const void *data, size_t size)
{
    if (bytes_reserve(bytes, size))
        return -ENOMEM;
    if (size)
        memcpy(bytes->data + bytes->size, data, size);
    bytes->size += size;
    return 0;
}

/* Writes a varint to `to`, which has room for VARINT_MAX_BYTES; returns the number of bytes. */
static inline size_t varint_put(uint8_t *to, uint64_t value)
{
    size_t size = 0;

    while (value >= 0x80) {
        to[size++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    to[size++] = (uint8_t)value;
    return size;
}

static inline int bytes_add_varint(struct bytes *bytes, uint64_t value)
{
    if (bytes_reserve(bytes, VARINT_MAX_BYTES))
        return -ENOMEM;
    bytes->size += varint_put(bytes->data + bytes->size, value);
    return 0;
}

static inline int bytes_add_u8(struct bytes *bytes, uint8_t value)
{
    return bytes_add(bytes, &value, 1);
}

/* A cursor. A read past the end, or a varint that does not fit 64 bits, sets `failed`, moves to the end and
 * gives zero from then on, so that a parser may check once, after several reads. */
struct bytes_reader {
    const uint8_t *at, *end;
    bool failed;
};

static inline struct bytes_reader reader_over(const uint8_t *data, size_t size)
{
    return (struct bytes_reader){.at = data, .end = size ? data + size : data}; /* no bytes may be NULL */
}

static inline size_t reader_left(const struct bytes_reader *reader)
{
    return (size_t)(reader->end - reader->at);
}

static inline void reader_fail(struct bytes_reader *reader)
{
    reader->failed = true;
    reader->at = reader->end;
}

static inline uint8_t reader_u8(struct bytes_reader *reader)
{
    if (reader->at == reader->end) {
        reader_fail(reader);
        return 0;
    }
    return *reader->at++;
}

static inline uint64_t reader_varint(struct bytes_reader *reader)
{
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = reader_u8(reader);

        if (shift == 63 && byte > 1)
            break;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
    reader_fail(reader);
    return 0;
}

/* The next `size` bytes, borrowed; NULL when there are not that many. */
static inline const uint8_t *reader_take(struct bytes_reader *reader, uint64_t size)
{
    const uint8_t *taken = reader->at;

    if (size > reader_left(reader)) {
        reader_fail(reader);
        return NULL;
    }
    reader->at += size;
    return taken;
}

/* Small signed numbers as small unsigned ones: 0, -1, 1, -2, ... become 0, 1, 2, 3, ... */
static inline uint32_t zigzag32(uint32_t value)
{
    return (value << 1) ^ (0u - (value >> 31));
}

static inline uint32_t unzigzag32(uint32_t value)
{
    return (value >> 1) ^ (0u - (value & 1));
}

#endif
