/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * PLT stubs. A stub jumps through a slot of the GOT, and the relocation of that slot names the function, so
 * each stub's `jmp *disp(%rip)` is decoded: that holds for lazy and eager binding, with and without IBT or
 * MPX, and for every linker. Slots of IRELATIVE relocations have no name; their stubs are left out.
 */
#include <errno.h>
#include <gelf.h>
#include <limits.h>
#include <string.h>

#include "base/array.h"
#include "image/sources.h"

struct slot {
    uint64_t address;
    const char *name; /* in libelf's copy of the string table */
};

struct slots {
    struct slot *items;
    size_t count, capacity;
};

static void slots_release(struct slots *slots)
{
    free(slots->items);
}

static int compare_slots(const void *left, const void *right)
{
    const struct slot *a = left, *b = right;

    return (a->address > b->address) - (a->address < b->address);
}

/* Adds the named slots of one relocation section. */
static int read_relocations(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, struct slots *slots)
{
    Elf_Scn *symbol_section = elf_getscn(elf, header->sh_link);
    Elf_Data *symbols = symbol_section ? elf_getdata(symbol_section, NULL) : NULL;
    Elf_Data *data = elf_getdata(section, NULL);
    GElf_Shdr symbol_header;
    GElf_Rela relocation;

    if (!symbols || !data || !gelf_getshdr(symbol_section, &symbol_header))
        return 0;
    for (int i = 0; i < INT_MAX && gelf_getrela(data, i, &relocation); i++) {
        uint64_t type = GELF_R_TYPE(relocation.r_info), index = GELF_R_SYM(relocation.r_info);
        const char *name;
        GElf_Sym symbol;

        if ((type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) || index == 0 || index > INT_MAX)
            continue;
        if (!gelf_getsym(symbols, (int)index, &symbol))
            continue;
        name = elf_strptr(elf, symbol_header.sh_link, symbol.st_name);
        if (!name || !*name)
            continue;
        if (array_reserve(&slots->items, &slots->capacity, slots->count + 1) < 0)
            return -ENOMEM;
        slots->items[slots->count++] = (struct slot){relocation.r_offset, name};
    }
    return 0;
}

static int read_slots(Elf *elf, struct slots *slots)
{
    Elf_Scn *section = NULL;
    GElf_Shdr header;

    while ((section = elf_nextscn(elf, section))) {
        if (!gelf_getshdr(section, &header) || header.sh_type != SHT_RELA)
            continue;
        if (read_relocations(elf, section, &header, slots) < 0)
            return -ENOMEM;
    }
    if (slots->count)
        qsort(slots->items, slots->count, sizeof(*slots->items), compare_slots);
    return 0;
}

/* The GOT slot that the stub of `size` bytes jumps through, 0 when this is no stub. Known beginnings:
 * endbr64, a bnd prefix, and mold's `mov $n, %r11d`. */
static uint64_t slot_of_stub(const uint8_t *code, size_t size, uint64_t address)
{
    static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
    size_t at = 0;
    int32_t distance;

    if (size >= sizeof(endbr64) && memcmp(code, endbr64, sizeof(endbr64)) == 0)
        at += sizeof(endbr64);
    if (at + 6 <= size && code[at] == 0x41 && code[at + 1] == 0xbb)
        at += 6;
    if (at < size && code[at] == 0xf2)
        at++;
    if (at + 6 > size || code[at] != 0xff || code[at + 1] != 0x25)
        return 0;
    memcpy(&distance, code + at + 2, sizeof(distance));
    return address + at + 6 + (uint64_t)(int64_t)distance;
}

static int add_stub(const struct slots *slots, uint64_t slot, uint64_t address, size_t size,
                    struct function_list *list)
{
    const struct slot key = {.address = slot};
    const struct slot *found = bsearch(&key, slots->items, slots->count, sizeof(key), compare_slots);
    AUTO_FREE char *name = NULL;

    if (!found)
        return 0;
    if (asprintf(&name, "%s@plt", found->name) < 0) {
        name = NULL; /* undefined after a failure */
        return -ENOMEM;
    }
    return function_list_add(list, name, address, size, IMAGE_FUNCTION_PLT, IMAGE_SOURCE_PLT);
}

/* Stubs are 16 bytes apart, those of .plt.got 8 where they need no endbr64. */
static size_t stub_size(const GElf_Shdr *header, const char *name)
{
    if (header->sh_entsize == 8 || header->sh_entsize == 16)
        return header->sh_entsize;
    return strcmp(name, ".plt.got") == 0 ? 8 : 16;
}

static int read_stubs(struct elf_image *image, const GElf_Shdr *header, const char *name,
                      const struct slots *slots, struct function_list *list)
{
    size_t size = stub_size(header, name), available;
    const uint8_t *code = elf_image_code(image, header->sh_addr, &available);

    if (!code)
        return 0;
    if (available > header->sh_size)
        available = header->sh_size;
    for (size_t at = 0; available - at >= size; at += size) {
        uint64_t address = header->sh_addr + at, slot = slot_of_stub(code + at, size, address);

        if (slot && add_stub(slots, slot, address, size, list) < 0)
            return -ENOMEM;
    }
    return 0;
}

int plt_collect(struct elf_image *image, struct function_list *list, struct error *err)
{
    CLEANUP(slots_release) struct slots slots = {0};
    Elf *elf = elf_image_elf(image);
    Elf_Scn *section = NULL;
    size_t names;

    if (elf_getshdrstrndx(elf, &names) < 0)
        return 0;
    if (read_slots(elf, &slots) < 0)
        return error_no_memory(err);
    if (slots.count == 0)
        return 0;
    while ((section = elf_nextscn(elf, section))) {
        GElf_Shdr header;
        const char *name = gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;

        if (!name || !is_plt_section(name) || header.sh_type != SHT_PROGBITS)
            continue;
        if (read_stubs(image, &header, name, &slots, list) < 0)
            return error_no_memory(err);
    }
    return 0;
}
