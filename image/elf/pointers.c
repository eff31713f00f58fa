/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "image/elf/pointers.h"

#include <gelf.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "image/arch/elf_machine.h"

#define WORD 8

struct relocation {
    uint64_t place;
    uint64_t value;
};

struct relocations {
    struct relocation *items; /* sorted by place */
    size_t count, capacity;
};

static void release_relocations(void *part)
{
    struct relocations *relocations = part;

    free(relocations->items);
    free(relocations);
}

static int compare_places(const void *left, const void *right)
{
    const struct relocation *a = left, *b = right;

    return (a->place > b->place) - (a->place < b->place);
}

static int read_section(struct relocations *relocations, Elf_Scn *section)
{
    Elf_Data *data = elf_getdata(section, NULL);
    GElf_Rela relocation;

    for (int i = 0; data && i < INT_MAX && gelf_getrela(data, i, &relocation); i++) {
        if (elf_relocation_kind(relocation.r_info) != ELF_RELOCATION_RELATIVE)
            continue;
        if (array_reserve(&relocations->items, &relocations->capacity, relocations->count + 1) < 0)
            return -ENOMEM;
        relocations->items[relocations->count++] =
            (struct relocation){relocation.r_offset, (uint64_t)relocation.r_addend};
    }
    return 0;
}

/* NULL: no memory. Sections that make no sense have none. */
static struct relocations *relocations_of(struct elf_image *image)
{
    struct relocations *relocations = elf_image_part(image, IMAGE_PART_RELOCATIONS);
    Elf_Scn *section = NULL;
    GElf_Shdr header;

    if (relocations)
        return relocations;
    relocations = calloc(1, sizeof(*relocations));
    if (!relocations)
        return NULL;
    elf_image_keep_part(image, IMAGE_PART_RELOCATIONS, relocations, release_relocations);
    while ((section = elf_nextscn(elf_image_elf(image), section)))
        if (gelf_getshdr(section, &header) && header.sh_type == SHT_RELA &&
            read_section(relocations, section) < 0)
            break;
    if (relocations->count)
        qsort(relocations->items, relocations->count, sizeof(*relocations->items), compare_places);
    return relocations;
}

bool image_relocation_at(struct elf_image *image, uint64_t place, uint64_t *ret_value)
{
    const struct relocations *relocations = relocations_of(image);
    const struct relocation key = {.place = place};
    const struct relocation *found =
        relocations && relocations->count
            ? bsearch(&key, relocations->items, relocations->count, sizeof(key), compare_places)
            : NULL;

    if (found)
        *ret_value = found->value;
    return found;
}

bool image_pointer_at(struct elf_image *image, uint64_t place, uint64_t *ret_value)
{
    const uint8_t *bytes;
    size_t available;

    if (image_relocation_at(image, place, ret_value))
        return true;
    bytes = elf_image_bytes(image, place, &available);
    if (!bytes || available < WORD)
        return false;
    memcpy(ret_value, bytes, WORD);
    return true;
}

uint64_t image_pointer_to(struct elf_image *image, uint64_t target, uint64_t after)
{
    const struct relocations *relocations = relocations_of(image);
    struct address_range range;
    uint64_t found = 0;
    bool executable;

    for (size_t i = 0; !found && elf_image_segment(image, i, &range, &executable); i++) {
        size_t size;
        const uint8_t *bytes = executable ? NULL : elf_image_bytes(image, range.start, &size);

        for (size_t at = -range.start & (WORD - 1); bytes && !found && at + WORD <= size; at += WORD)
            if (range.start + at > after && memcmp(bytes + at, &target, WORD) == 0)
                found = range.start + at;
    }
    for (size_t i = 0; relocations && i < relocations->count; i++) {
        const struct relocation *relocation = &relocations->items[i];

        if (relocation->value == target && relocation->place > after &&
            (!found || relocation->place < found)) {
            found = relocation->place;
            break;
        }
    }
    return found;
}
