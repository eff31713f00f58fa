/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The columns of segments of events that are no calls (goroutines, synchronisation): each its size, its size
 * packed (0: it is not packed), and its bytes, packed by zstd where that makes them fewer.
 */
#ifndef TRACESTORE_COLUMN_PACKING_H
#define TRACESTORE_COLUMN_PACKING_H

#include <stddef.h>
#include <stdint.h>

#include "store/bytes/bytes.h"

/* Appends `count` columns to `out`. -ENOMEM. */
int columns_pack(const struct bytes *columns, size_t count, struct bytes *out);

/* Reads one column into `column`, which is empty. It has at most `most` bytes. -EBADMSG, -ENOMEM. */
int column_unpack(struct bytes_reader *reader, uint64_t most, struct bytes *column);

/* Small signed numbers as small unsigned ones, and back: as zigzag32. */
static inline uint64_t zigzag64(uint64_t value)
{
    return (value << 1) ^ (0ull - (value >> 63));
}

static inline uint64_t unzigzag64(uint64_t value)
{
    return (value >> 1) ^ (0ull - (value & 1));
}

#endif
