/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The lists of functions in `segments.functions`, as they are and with a checksum that fits. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <zlib.h>

#include "store/segment/call_list.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool may_name(const uint8_t *data, size_t size, uint32_t function)
{
    const struct function_set set = {.ids = &function, .count = 1};

    return call_list_may_name(data, size, &set);
}

/* What holds of every list that can be read: it is in order, ends, and is the same when it is packed again.
 */
static void read_list(const uint8_t *data, size_t size)
{
    struct function_calls *functions = calloc(size + 1, sizeof(*functions));
    struct call_list_reader list;
    AUTO_BYTES packed = {0};
    size_t count = 0;
    int code = functions ? call_list_open(data, size, &list) : -ENOMEM;

    while (!code && (code = call_list_next(&list, &functions[count])) == 0) {
        if (functions[count].function <= (count ? functions[count - 1].function : 0) || count >= size ||
            !may_name(data, size, functions[count].function))
            abort();
        count++;
    }
    if (code == 1 && (call_list_pack(functions, count, &packed) || packed.size > size))
        abort();
    for (size_t i = 0; code == 1 && i < count; i++)
        if (!may_name(packed.data, packed.size, functions[i].function))
            abort();
    free(functions);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_BYTES whole = {0};
    uint32_t checksum = (uint32_t)crc32(0, data, (uInt)size);

    read_list(data, size);
    if (bytes_add(&whole, data, size))
        return 0;
    for (int i = 0; i < 4; i++)
        if (bytes_add_u8(&whole, (uint8_t)(checksum >> 8 * i)))
            return 0;
    read_list(whole.data, whole.size);
    return 0;
}
