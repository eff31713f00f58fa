/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Any bytes as the tokens of a thread, in up to three looks at them: what comes out of it is calls and
 * returns. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "collector/uprobe/unpack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int check_record(void *context, const void *record, size_t size)
{
    const struct wire_header *header = record;
    size_t expected =
        header->kind == WIRE_CALL_FROM ? sizeof(struct wire_call_from) : sizeof(struct wire_call);

    if (header->kind < WIRE_CALL || header->kind > WIRE_CALL_FROM || size != expected || header->tid != 7)
        abort();
    ++*(uint64_t *)context;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct unpacker *unpacker = calloc(1, sizeof(*unpacker));
    uint64_t records = 0;
    struct unpack_sink sink = {.handle = check_record, .context = &records};
    size_t length = size < PACKED_BYTES ? size : PACKED_BYTES;

    if (!unpacker)
        return 0;
    unpack_begin(unpacker, 7);
    if (!unpack_tokens(unpacker, data, length / 3, size % 200, &sink) &&
        !unpack_tokens(unpacker, data, length / 2, size % 300, &sink) &&
        !unpack_tokens(unpacker, data, length, 0, &sink))
        unpack_end(unpacker, predict_check(&unpacker->predictor));
    if (records != sink.records)
        abort();
    free(unpacker);
    return 0;
}
