/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Functions of the symbol tables. .symtab has everything unless the image is stripped, .dynsym what is
 * exported; both are read, since a stripped image may keep an unusual part of either. Symbols of one address
 * are one function with a best name and aliases.
 */
#include <errno.h>
#include <gelf.h>
#include <limits.h>
#include <string.h>

#include "base/array.h"
#include "image/sources.h"

struct symbol {
    const char *name; /* in libelf's copy of the string table */
    size_t length;    /* without the symbol version */
    uint64_t address;
    uint64_t size;
    uint64_t section_end;
    unsigned char rank; /* 0 global, 1 weak, 2 local */
    bool ifunc;
};

struct code_section {
    uint64_t address;
    uint64_t end;
};

struct reader {
    Elf *elf;
    struct symbol *symbols;
    size_t count, capacity;
    struct code_section *sections;
    size_t section_count, section_capacity;
};

static void reader_release(struct reader *reader)
{
    free(reader->symbols);
    free(reader->sections);
}

/* ---------------------------------------------------------------------------------------------- reading */

static int read_code_sections(struct reader *reader)
{
    Elf_Scn *section = NULL;
    GElf_Shdr header;

    while ((section = elf_nextscn(reader->elf, section))) {
        if (!gelf_getshdr(section, &header) || header.sh_type != SHT_PROGBITS)
            continue;
        if (!(header.sh_flags & SHF_EXECINSTR) || header.sh_size > UINT64_MAX - header.sh_addr)
            continue;
        if (array_reserve(&reader->sections, &reader->section_capacity, reader->section_count + 1) < 0)
            return -ENOMEM;
        reader->sections[reader->section_count++] =
            (struct code_section){header.sh_addr, header.sh_addr + header.sh_size};
    }
    return 0;
}

/* The end of the code section that holds `address`, 0 when none does. */
static uint64_t code_end(const struct reader *reader, uint64_t address)
{
    for (size_t i = 0; i < reader->section_count; i++)
        if (address >= reader->sections[i].address && address < reader->sections[i].end)
            return reader->sections[i].end;
    return 0;
}

static unsigned char rank_of_binding(unsigned char info)
{
    switch (GELF_ST_BIND(info)) {
    case STB_GLOBAL:
    case STB_GNU_UNIQUE:
        return 0;
    case STB_WEAK:
        return 1;
    default:
        return 2;
    }
}

static bool is_function(const GElf_Sym *symbol)
{
    unsigned char type = GELF_ST_TYPE(symbol->st_info);

    return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol->st_shndx != SHN_UNDEF &&
           symbol->st_shndx != SHN_ABS && symbol->st_shndx != SHN_COMMON;
}

/* memcpy@@GLIBC_2.14 in .symtab is memcpy; a name that begins with @ is just odd. */
static size_t unversioned_length(const char *name)
{
    const char *at = strchr(name, '@');

    return at && at > name ? (size_t)(at - name) : strlen(name);
}

static int read_table(struct reader *reader, Elf_Scn *section, const GElf_Shdr *header)
{
    Elf_Data *data = elf_getdata(section, NULL);
    GElf_Sym symbol;

    if (!data)
        return 0;
    for (int i = 0; i < INT_MAX && gelf_getsym(data, i, &symbol); i++) {
        uint64_t end = is_function(&symbol) ? code_end(reader, symbol.st_value) : 0;
        const char *name = end ? elf_strptr(reader->elf, header->sh_link, symbol.st_name) : NULL;

        if (!name || !*name)
            continue;
        if (array_reserve(&reader->symbols, &reader->capacity, reader->count + 1) < 0)
            return -ENOMEM;
        reader->symbols[reader->count++] = (struct symbol){
            .name = name,
            .length = unversioned_length(name),
            .address = symbol.st_value,
            .size = symbol.st_size > end - symbol.st_value ? end - symbol.st_value : symbol.st_size,
            .section_end = end,
            .rank = rank_of_binding(symbol.st_info),
            .ifunc = GELF_ST_TYPE(symbol.st_info) == STT_GNU_IFUNC,
        };
    }
    return 0;
}

static int read_tables(struct reader *reader)
{
    Elf_Scn *section = NULL;
    GElf_Shdr header;
    int r;

    while ((section = elf_nextscn(reader->elf, section))) {
        if (!gelf_getshdr(section, &header))
            continue;
        if (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM)
            continue;
        r = read_table(reader, section, &header);
        if (r < 0)
            return r;
    }
    return 0;
}

/* ---------------------------------------------------------------------------------------------- merging */

static size_t leading_underscores(const struct symbol *symbol)
{
    size_t n = strspn(symbol->name, "_");

    return n < symbol->length ? n : symbol->length;
}

static int compare_names(const struct symbol *a, const struct symbol *b)
{
    int order = strncmp(a->name, b->name, a->length < b->length ? a->length : b->length);

    return order ? order : (a->length > b->length) - (a->length < b->length);
}

/* By address; at one address the best name first, in an order that depends on nothing but the names. */
static int compare_symbols(const void *left, const void *right)
{
    const struct symbol *a = left, *b = right;
    size_t underscores_a = leading_underscores(a), underscores_b = leading_underscores(b);

    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    if (a->rank != b->rank)
        return a->rank - b->rank;
    if (underscores_a != underscores_b)
        return underscores_a < underscores_b ? -1 : 1;
    if (a->length != b->length)
        return a->length < b->length ? -1 : 1;
    return compare_names(a, b);
}

/* gcc names the parts it moves away NAME.cold or NAME.cold.N. */
static bool is_fragment(const struct symbol *symbol)
{
    const char *cold = memmem(symbol->name, symbol->length, ".cold", 5);
    const char *rest = cold ? cold + 5 : NULL;

    return rest && (rest == symbol->name + symbol->length || *rest == '.');
}

/* Keeps the names of symbols[1..count) that differ from the first one's. */
static int collect_aliases(const struct symbol *symbols, size_t count, char ***ret_aliases)
{
    char **aliases = calloc(count, sizeof(*aliases));
    size_t kept = 0;

    if (!aliases)
        return -ENOMEM;
    for (size_t i = 1; i < count; i++) {
        bool seen = compare_names(&symbols[0], &symbols[i]) == 0;

        for (size_t j = 0; j < kept && !seen; j++)
            seen = strlen(aliases[j]) == symbols[i].length &&
                   memcmp(aliases[j], symbols[i].name, symbols[i].length) == 0;
        if (seen)
            continue;
        aliases[kept] = strndup(symbols[i].name, symbols[i].length);
        if (!aliases[kept++])
            goto no_memory; /* the entry is NULL and ends the list */
    }
    if (kept == 0) {
        free(aliases);
        aliases = NULL;
    }
    *ret_aliases = aliases;
    return 0;

no_memory:
    for (char **alias = aliases; *alias; alias++)
        free(*alias);
    free(aliases);
    return -ENOMEM;
}

/* Makes one function of `count` symbols of one address. `next` is the next symbol's address, which ends a
 * function without a size. */
static int merge(const struct symbol *symbols, size_t count, uint64_t next, struct function_list *list)
{
    AUTO_FREE char *name = strndup(symbols[0].name, symbols[0].length);
    uint64_t end = symbols[0].section_end, size = 0;
    unsigned flags = 0;
    int r;

    if (!name)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        if (symbols[i].size > size)
            size = symbols[i].size;
        if (symbols[i].ifunc)
            flags |= IMAGE_FUNCTION_IFUNC;
        if (is_fragment(&symbols[i]))
            flags |= IMAGE_FUNCTION_FRAGMENT;
    }
    if (size == 0) {
        size = (next < end ? next : end) - symbols[0].address;
        flags |= IMAGE_FUNCTION_SIZE_GUESSED;
    }
    r = function_list_add(list, name, symbols[0].address, size, flags);
    if (r < 0 || count == 1)
        return r;
    return collect_aliases(symbols, count, &list->items[list->count - 1].aliases);
}

static int merge_all(const struct reader *reader, struct function_list *list)
{
    uint64_t reached = 0; /* the furthest end of a function with a size of its own */

    for (size_t first = 0, behind; first < reader->count; first = behind) {
        const struct symbol *symbols = reader->symbols + first;
        struct image_function *function;
        int r;

        for (behind = first + 1; behind < reader->count; behind++)
            if (reader->symbols[behind].address != symbols->address)
                break;
        r = merge(symbols, behind - first,
                  behind < reader->count ? reader->symbols[behind].address : UINT64_MAX, list);
        if (r < 0)
            return r;
        function = &list->items[list->count - 1];
        if (function->address < reached)
            function->flags |= IMAGE_FUNCTION_INSIDE;
        if (!(function->flags & IMAGE_FUNCTION_SIZE_GUESSED) && function->address + function->size > reached)
            reached = function->address + function->size;
    }
    return 0;
}

int symbols_collect(struct elf_image *image, struct function_list *list, struct error *err)
{
    CLEANUP(reader_release) struct reader reader = {.elf = elf_image_elf(image)};
    int r = read_code_sections(&reader);

    if (r == 0)
        r = read_tables(&reader);
    if (r == 0 && reader.count) {
        qsort(reader.symbols, reader.count, sizeof(*reader.symbols), compare_symbols);
        r = merge_all(&reader, list);
    }
    return r < 0 ? error_no_memory(err) : 0;
}
