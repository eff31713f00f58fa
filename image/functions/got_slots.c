/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "image/functions/got_slots.h"

#include <errno.h>
#include <gelf.h>
#include <limits.h>
#include <stdio.h>

#include "base/array.h"
#include "image/arch/elf_machine.h"

void got_slots_release(struct got_slots *slots)
{
    free(slots->items);
    *slots = (struct got_slots){0};
}

static int compare_slots(const void *left, const void *right)
{
    const struct got_slot *a = left, *b = right;

    return (a->address > b->address) - (a->address < b->address);
}

/* What one relocation section refers to. */
struct relocation_table {
    Elf *elf;
    Elf_Data *relocations, *symbols; /* symbols: NULL where the section has none */
    size_t strings;
};

static bool open_table(Elf *elf, Elf_Scn *section, struct relocation_table *table)
{
    GElf_Shdr header, symbol_header;
    Elf_Scn *symbols;

    if (!gelf_getshdr(section, &header) || header.sh_type != SHT_RELA)
        return false;
    *table = (struct relocation_table){.elf = elf, .relocations = elf_getdata(section, NULL)};
    symbols = elf_getscn(elf, header.sh_link);
    if (symbols && gelf_getshdr(symbols, &symbol_header)) {
        table->symbols = elf_getdata(symbols, NULL);
        table->strings = symbol_header.sh_link;
    }
    return table->relocations;
}

static const char *symbol_name(const struct relocation_table *table, uint64_t index)
{
    GElf_Sym symbol;

    if (!table->symbols || index == 0 || index > INT_MAX || !gelf_getsym(table->symbols, (int)index, &symbol))
        return NULL;
    return elf_strptr(table->elf, table->strings, symbol.st_name);
}

/* The slot takes its name from the indirect function whose resolver lies at `address`, if there is one. */
static void name_by_resolver(const struct function_list *functions, uint64_t address, struct got_slot *slot)
{
    const struct image_function *function = image_functions_find(functions->items, functions->count, address);

    if (!function || function->address != address || !(function->flags & IMAGE_FUNCTION_IFUNC))
        return;
    slot->name = function->name;
    slot->aliases = function->aliases;
}

static int read_table(const struct relocation_table *table, const struct function_list *functions,
                      struct got_slots *slots)
{
    GElf_Rela relocation;

    for (int i = 0; i < INT_MAX && gelf_getrela(table->relocations, i, &relocation); i++) {
        struct got_slot slot = {.address = relocation.r_offset};

        switch (elf_relocation_kind(relocation.r_info)) {
        case ELF_RELOCATION_SLOT:
            slot.name = symbol_name(table, GELF_R_SYM(relocation.r_info));
            break;
        case ELF_RELOCATION_INDIRECT:
            name_by_resolver(functions, (uint64_t)relocation.r_addend, &slot);
            break;
        default:
            break;
        }
        if (!slot.name || !*slot.name)
            continue;
        if (array_reserve(&slots->items, &slots->capacity, slots->count + 1) < 0)
            return -ENOMEM;
        slots->items[slots->count++] = slot;
    }
    return 0;
}

int got_slots_read(struct elf_image *image, const struct function_list *functions, struct got_slots *slots)
{
    Elf *elf = elf_image_elf(image);
    struct relocation_table table;
    Elf_Scn *section = NULL;

    while ((section = elf_nextscn(elf, section)))
        if (open_table(elf, section, &table) && read_table(&table, functions, slots) < 0)
            return -ENOMEM;
    if (slots->count)
        qsort(slots->items, slots->count, sizeof(*slots->items), compare_slots);
    return 0;
}

const struct got_slot *got_slots_find(const struct got_slots *slots, uint64_t address)
{
    const struct got_slot key = {.address = address};

    return slots->count ? bsearch(&key, slots->items, slots->count, sizeof(key), compare_slots) : NULL;
}

/* NULL: no memory. */
static char *stub_name(const char *function)
{
    char *name = NULL;

    return asprintf(&name, "%s@plt", function) < 0 ? NULL : name;
}

int got_slot_add_function(const struct got_slot *slot, uint64_t address, uint64_t size, unsigned flags,
                          struct function_list *list)
{
    AUTO_FREE char *name = stub_name(slot->name);
    int r = name ? function_list_add(list, name, address, size, flags | IMAGE_FUNCTION_PLT, IMAGE_SOURCE_PLT)
                 : -ENOMEM;

    for (char **alias = slot->aliases; r == 0 && alias && *alias; alias++) {
        AUTO_FREE char *other = stub_name(*alias);

        r = other ? image_function_add_alias(&list->items[list->count - 1], other) : -ENOMEM;
    }
    return r;
}
