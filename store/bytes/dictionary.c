/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/bytes/dictionary.h"

#include "base/cleanup.h"

#define FIRST_TABLE_SIZE 32u

static int table_grow(struct dictionary *dictionary)
{
    size_t size = dictionary->table_size ? 2 * dictionary->table_size : FIRST_TABLE_SIZE;
    struct local_id *table = calloc(size, sizeof(*table));

    if (!table)
        return -ENOMEM;
    free(dictionary->table);
    dictionary->table = table;
    dictionary->table_size = size;
    for (size_t i = 0; i < dictionary->count; i++)
        *dictionary_slot(dictionary, dictionary->ids[i]) =
            (struct local_id){.id = dictionary->ids[i], .local = (uint32_t)i + 1};
    return 0;
}

static int write_entry(struct bytes *out, uint32_t previous, uint32_t id)
{
    return bytes_add_varint(out, zigzag32(id - previous - 1));
}

int dictionary_add(struct dictionary *dictionary, uint32_t id, uint16_t *ret_local)
{
    size_t count = dictionary->count;

    if (count == DICTIONARY_MAX)
        return -E2BIG;
    if (array_reserve(&dictionary->ids, &dictionary->capacity, count + 1) ||
        (2 * count + 2 > dictionary->table_size && table_grow(dictionary)) ||
        write_entry(&dictionary->section, count ? dictionary->ids[count - 1] : 0, id))
        return -ENOMEM;
    dictionary->ids[count] = id;
    dictionary->count++;
    *dictionary_slot(dictionary, id) = (struct local_id){.id = id, .local = (uint32_t)count + 1};
    *ret_local = (uint16_t)(count + 1);
    return 0;
}

void dictionary_clear(struct dictionary *dictionary)
{
    dictionary->section.size = 0;
    dictionary->count = 0;
    if (dictionary->table_size)
        memset(dictionary->table, 0, dictionary->table_size * sizeof(*dictionary->table));
}

void dictionary_release(struct dictionary *dictionary)
{
    free(dictionary->ids);
    free(dictionary->table);
    bytes_release(&dictionary->section);
    *dictionary = (struct dictionary){0};
}

int dictionary_write(const uint32_t *ids, size_t count, struct bytes *out)
{
    for (size_t i = 0; i < count; i++)
        if (write_entry(out, i ? ids[i - 1] : 0, ids[i]))
            return -ENOMEM;
    return 0;
}

int dictionary_read(const uint8_t *data, size_t size, uint32_t least, uint32_t **ret_ids, size_t *ret_count)
{
    struct bytes_reader reader = reader_over(data, size);
    AUTO_FREE uint32_t *ids = NULL;
    uint32_t previous = 0;
    size_t count = 0, capacity = 0;

    while (reader_left(&reader)) {
        uint64_t step = reader_varint(&reader);

        if (reader.failed || step > UINT32_MAX || count == DICTIONARY_MAX)
            return -EBADMSG;
        if (array_reserve(&ids, &capacity, count + 1))
            return -ENOMEM;
        previous += unzigzag32((uint32_t)step) + 1;
        if (previous < least)
            return -EBADMSG;
        ids[count++] = previous;
    }
    *ret_ids = take_pointer(ids);
    *ret_count = count;
    return 0;
}
