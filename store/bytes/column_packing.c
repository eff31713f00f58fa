/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/bytes/column_packing.h"

#include <errno.h>
#include <zstd.h>

#define ZSTD_LEVEL 3
#define LEAST_PACKED 16 /* bytes; a shorter column stays as it is */

static int pack_column(ZSTD_CCtx *zstd, const struct bytes *column, struct bytes *scratch, struct bytes *out)
{
    size_t packed = 0;

    if (bytes_add_varint(out, column->size))
        return -ENOMEM;
    if (column->size >= LEAST_PACKED) {
        size_t bound = ZSTD_compressBound(column->size);

        scratch->size = 0;
        if (bytes_reserve(scratch, bound))
            return -ENOMEM;
        packed = ZSTD_compressCCtx(zstd, scratch->data, bound, column->data, column->size, ZSTD_LEVEL);
        if (ZSTD_isError(packed))
            return -ENOMEM; /* there is room, so nothing else can fail */
        packed = packed < column->size ? packed : 0;
    }
    if (bytes_add_varint(out, packed))
        return -ENOMEM;
    return packed ? bytes_add(out, scratch->data, packed) : bytes_add(out, column->data, column->size);
}

int columns_pack(const struct bytes *columns, size_t count, struct bytes *out)
{
    AUTO_BYTES scratch = {0};
    ZSTD_CCtx *zstd = ZSTD_createCCtx();
    int code = zstd ? 0 : -ENOMEM;

    for (size_t i = 0; i < count && !code; i++)
        code = pack_column(zstd, &columns[i], &scratch, out);
    ZSTD_freeCCtx(zstd);
    return code;
}

int column_unpack(struct bytes_reader *reader, uint64_t most, struct bytes *column)
{
    uint64_t size = reader_varint(reader), packed = reader_varint(reader);
    const uint8_t *data;

    if (size > most)
        return -EBADMSG;
    data = reader_take(reader, packed ? packed : size);
    if (!data)
        return -EBADMSG;
    if (!packed)
        return bytes_add(column, data, size);
    if (bytes_reserve(column, size))
        return -ENOMEM;
    if (ZSTD_decompress(column->data, size, data, packed) != size)
        return -EBADMSG;
    column->size = size;
    return 0;
}
