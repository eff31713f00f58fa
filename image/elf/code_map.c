/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <gelf.h>
#include <string.h>

#include "base/array.h"
#include "image/elf/elf_parts.h"

bool is_plt_section(const char *name)
{
    return strncmp(name, ".plt", 4) == 0 || strncmp(name, ".iplt", 5) == 0;
}

static int add(struct code_map *map, uint64_t start, uint64_t end, bool plt)
{
    if (array_reserve(&map->items, &map->capacity, map->count + 1) < 0)
        return -ENOMEM;
    map->items[map->count++] = (struct code_section){start, end, plt};
    return 0;
}

/* Cuts a section to what the file has of it: its size is a claim, which sizes of functions would follow.
 * False: nothing is there. */
static bool cut_to_segment(struct elf_image *image, const GElf_Shdr *section, uint64_t *ret_end)
{
    struct address_range range;
    bool executable;

    for (size_t i = 0; elf_image_segment(image, i, &range, &executable); i++) {
        if (section->sh_addr < range.start || section->sh_addr >= range.end)
            continue;
        *ret_end =
            section->sh_size < range.end - section->sh_addr ? section->sh_addr + section->sh_size : range.end;
        return true;
    }
    return false;
}

static int read_sections(struct elf_image *image, struct code_map *map)
{
    Elf *elf = elf_image_elf(image);
    Elf_Scn *section = NULL;
    GElf_Shdr header;
    size_t names = 0;

    if (elf_getshdrstrndx(elf, &names) < 0)
        names = 0;
    while ((section = elf_nextscn(elf, section))) {
        const char *name;
        uint64_t end;

        if (!gelf_getshdr(section, &header) || header.sh_type != SHT_PROGBITS || !header.sh_size)
            continue;
        if (!(header.sh_flags & SHF_EXECINSTR) || !cut_to_segment(image, &header, &end))
            continue;
        name = names ? elf_strptr(elf, names, header.sh_name) : NULL;
        if (add(map, header.sh_addr, end, name && is_plt_section(name)) < 0)
            return -ENOMEM;
    }
    return 0;
}

static int compare(const void *left, const void *right)
{
    const struct code_section *a = left, *b = right;

    return (a->start > b->start) - (a->start < b->start);
}

int code_map_read(struct elf_image *image, struct code_map *map)
{
    struct address_range range;
    bool executable;
    int r = read_sections(image, map);

    for (size_t i = 0; r == 0 && !elf_image_facts(image)->has_sections; i++) {
        if (!elf_image_segment(image, i, &range, &executable))
            break;
        if (executable)
            r = add(map, range.start, range.end, false);
    }
    if (r == 0 && map->count)
        qsort(map->items, map->count, sizeof(*map->items), compare);
    return r;
}

void code_map_release(struct code_map *map)
{
    free(map->items);
}

const struct code_section *code_map_find(const struct code_map *map, uint64_t address)
{
    size_t low = 0, high = map->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (map->items[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low && address < map->items[low - 1].end ? &map->items[low - 1] : NULL;
}
