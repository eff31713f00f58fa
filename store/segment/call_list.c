/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/segment/call_list.h"

#include <zlib.h>

#define CHECKSUM_BYTES 4

static int compare_functions(const void *left, const void *right)
{
    const struct function_calls *a = left, *b = right;

    return (a->function > b->function) - (a->function < b->function);
}

void call_list_sort(struct function_calls *functions, size_t count)
{
    if (count)
        qsort(functions, count, sizeof(*functions), compare_functions);
}

int call_list_pack(struct function_calls *functions, size_t count, struct bytes *out)
{
    size_t start = out->size;
    uint32_t previous = 0, checksum;

    if (bytes_reserve(out, count * 2 * VARINT_MAX_BYTES + CHECKSUM_BYTES))
        return -ENOMEM;
    call_list_sort(functions, count);
    for (size_t i = 0; i < count; i++) {
        uint32_t step = functions[i].function - previous;

        out->size += varint_put(out->data + out->size, functions[i].calls << 1 | (step > 1));
        if (step > 1)
            out->size += varint_put(out->data + out->size, step - 2);
        previous = functions[i].function;
    }
    checksum = (uint32_t)crc32(0, out->data + start, (uInt)(out->size - start));
    for (int i = 0; i < CHECKSUM_BYTES; i++)
        out->data[out->size++] = (uint8_t)(checksum >> 8 * i);
    return 0;
}

int call_list_open(const uint8_t *data, size_t size, struct call_list_reader *ret_list)
{
    uint32_t checksum = 0;

    if (size < CHECKSUM_BYTES)
        return -EBADMSG;
    size -= CHECKSUM_BYTES;
    for (int i = 0; i < CHECKSUM_BYTES; i++)
        checksum |= (uint32_t)data[size + (size_t)i] << 8 * i;
    if (crc32(0, data, (uInt)size) != checksum)
        return -EBADMSG;
    *ret_list = (struct call_list_reader){.bytes = reader_over(data, size)};
    return 0;
}

int call_list_next(struct call_list_reader *list, struct function_calls *ret_function)
{
    uint64_t calls, step = 1;

    if (!reader_left(&list->bytes))
        return list->bytes.failed ? -EBADMSG : 1;
    calls = reader_varint(&list->bytes);
    if (calls & 1) {
        uint64_t between = reader_varint(&list->bytes);

        step = between < UINT32_MAX ? between + 2 : UINT64_MAX;
    }
    if (list->bytes.failed || step > UINT32_MAX - list->function) {
        reader_fail(&list->bytes);
        return -EBADMSG;
    }
    list->function += (uint32_t)step;
    *ret_function = (struct function_calls){list->function, calls >> 1};
    return 0;
}

bool call_list_may_name(const uint8_t *data, size_t size, const struct function_set *functions)
{
    struct call_list_reader list;
    struct function_calls named = {0};
    uint32_t last = functions->count ? functions->ids[functions->count - 1] : 0;
    int code = call_list_open(data, size, &list);
    bool found = false;

    while (!code && !found && named.function < last) {
        code = call_list_next(&list, &named);
        found = !code && function_set_has(functions, named.function);
    }
    return code < 0 || found;
}
