/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/segment/numbering.h"

#include <errno.h>
#include <stdlib.h>
#include <uthash.h>

#include "base/cleanup.h"

struct renamed_number {
    int64_t number, id;
    UT_hash_handle hh;
};

void numbering_init(struct numbering *numbering, int64_t largest)
{
    *numbering = (struct numbering){.first = largest + 1, .next = largest + 1, .settled = largest + 1};
}

void numbering_release(struct numbering *numbering)
{
    struct renamed_number *renamed, *next;

    HASH_ITER (hh, numbering->renamed, renamed, next) {
        HASH_DEL(numbering->renamed, renamed);
        free(renamed);
    }
}

int64_t numbering_take(struct numbering *numbering)
{
    return numbering->next++;
}

int numbering_of_row(struct numbering *numbering, int64_t id, int64_t *ret_number)
{
    int64_t number = id < numbering->first ? id : numbering_take(numbering);
    int code = numbering_set(numbering, number, id);

    if (!code)
        *ret_number = number;
    return code;
}

static struct renamed_number *find(const struct numbering *numbering, int64_t number)
{
    struct renamed_number *renamed;

    HASH_FIND(hh, numbering->renamed, &number, sizeof(number), renamed);
    return renamed;
}

int numbering_set(struct numbering *numbering, int64_t number, int64_t id)
{
    struct renamed_number *renamed = find(numbering, number);

    if (!renamed && number == id)
        return 0;
    if (!renamed) {
        renamed = calloc(1, sizeof(*renamed));
        if (!renamed)
            return -ENOMEM;
        renamed->number = number;
        HASH_ADD(hh, numbering->renamed, number, sizeof(renamed->number), renamed);
    }
    renamed->id = id;
    return 0;
}

int64_t numbering_id(const struct numbering *numbering, int64_t number)
{
    const struct renamed_number *renamed = find(numbering, number);

    return renamed ? renamed->id : number;
}

/* ------------------------------------------------------------------------------------------ sections */

static int translate_dictionary(const struct numbering *numbering, struct section *section,
                                struct bytes *scratch)
{
    AUTO_FREE uint32_t *ids = NULL;
    size_t count;
    int code = dictionary_read(section->data, section->size, 0, &ids, &count);

    if (code)
        return code;
    for (size_t i = 0; i < count; i++)
        ids[i] = (uint32_t)numbering_id(numbering, ids[i]);
    scratch->size = 0;
    if (dictionary_write(ids, count, scratch))
        return -ENOMEM;
    *section = (struct section){scratch->data, scratch->size};
    return 0;
}

/* Of the three numbers of a call only the function changes. */
static int translate_stack(const struct numbering *numbering, struct section *section, struct bytes *scratch)
{
    struct bytes_reader reader = reader_over(section->data, section->size);
    uint32_t number = 0, before = 0;

    scratch->size = 0;
    while (reader_left(&reader)) {
        uint32_t id;

        number += unzigzag32((uint32_t)reader_varint(&reader));
        id = (uint32_t)numbering_id(numbering, number);
        if (bytes_add_varint(scratch, zigzag32(id - before)) ||
            bytes_add_varint(scratch, reader_varint(&reader)) ||
            bytes_add_varint(scratch, reader_varint(&reader)))
            return -ENOMEM;
        before = id;
    }
    *section = (struct section){scratch->data, scratch->size};
    return 0;
}

int numbering_translate(const struct numbering numberings[NUMBER_KINDS], struct segment_parts *parts,
                        struct bytes scratch[SECTION_COUNT])
{
    const struct numbering *functions = &numberings[NUMBER_FUNCTION], *sites = &numberings[NUMBER_SITE];
    struct section *sections = parts->sections;
    int code = 0;

    if (functions->renamed)
        code = translate_dictionary(functions, &sections[SECTION_DICTIONARY], &scratch[SECTION_DICTIONARY]);
    if (!code && functions->renamed)
        code = translate_stack(functions, &sections[SECTION_STACK], &scratch[SECTION_STACK]);
    if (!code && sites->renamed)
        code = translate_dictionary(sites, &sections[SECTION_SITE_DICTIONARY],
                                    &scratch[SECTION_SITE_DICTIONARY]);
    return code;
}
