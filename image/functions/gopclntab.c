/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Layouts, told apart by the magic number (Go's cmd/link/internal/ld/pcln.go and debug/gosym/pclntab.go):
 *
 *   fffffffb  go 1.2   header, functab of {entry, offset of the function's record} in 8 bytes each, all other
 *                      offsets from the table's begin, one list of files
 *   fffffffa  go 1.16  parts of their own for names, units, files, pc tables and records; files by unit
 *   fffffff0  go 1.18  entries are 4-byte offsets from the text's begin, which the header has
 *   fffffff1  go 1.20  records have the line of `func`
 *
 * The text's begin is a pointer: a linker other than Go's leaves it to a relocation, and since go 1.26 it is
 * always 0. Each place where it may be known is tried until the functions' entries fall on beginnings of
 * code.
 */
#include "image/functions/gopclntab.h"

#include <errno.h>
#include <gelf.h>
#include <string.h>

#include "base/array.h"
#include "image/arch/code_bytes.h"
#include "image/elf/pointers.h"
#include "image/functions/gopclntab_table.h"

#define TEXT_START_AT (GO_HEADER_SIZE + 2 * GO_WORD)
#define MODULEDATA_WORDS 48
#define TRIES_MAX 16 /* tables, and begins of text: more are only in crafted files */

/* ---------------------------------------------------------------------------------------------- the header
 */

static bool read_header(struct gopclntab *table)
{
    uint64_t words[7];
    bool has_text;

    switch (table->data[0]) {
    case 0xfb:
        table->layout = GO_1_2;
        return go_table_number(table, GO_HEADER_SIZE, GO_WORD, &table->count);
    case 0xfa:
        table->layout = GO_1_16;
        break;
    case 0xf0:
        table->layout = GO_1_18;
        break;
    default:
        table->layout = GO_1_20;
    }
    has_text = table->layout >= GO_1_18;
    if (!go_table_number(table, GO_HEADER_SIZE, GO_WORD, &table->count) ||
        (has_text && !go_table_number(table, TEXT_START_AT, GO_WORD, &table->text)))
        return false;
    for (size_t i = 0; i < 5; i++) {
        if (!go_table_number(table, GO_HEADER_SIZE + (2 + has_text + i) * GO_WORD, GO_WORD, &words[i]) ||
            words[i] > table->size)
            return false;
    }
    table->names = words[0];
    table->units = words[1];
    table->files = words[2];
    table->pcs = words[3];
    table->funcs = words[4];
    return true;
}

/* Whether a table begins with these bytes: magic, two zeros, the instruction unit of x86, the pointer size.
 */
static bool has_magic(const uint8_t *data, size_t size)
{
    static const uint8_t rest[] = {0xff, 0xff, 0xff, 0, 0, 1, GO_WORD};

    return size > GO_HEADER_SIZE + GO_WORD && memcmp(data + 1, rest, sizeof(rest)) == 0 &&
           (data[0] == 0xfb || data[0] == 0xfa || data[0] == 0xf0 || data[0] == 0xf1);
}

/* Entries must rise, as the runtime looks them up by bisection. */
static bool is_sorted(const struct gopclntab *table)
{
    struct go_function function;

    for (uint64_t i = 0; i < table->count; i++)
        if (!go_table_function(table, i, &function) || function.end < function.entry)
            return false;
    return true;
}

/* ---------------------------------------------------------------------------------------------- the text */

enum { SAMPLES = 256 };

/* Whether code can begin at `address`: Go fills up behind a function with breakpoints. Compilers of C, whose
 * functions are in the table when Go's linker took them in (the race detector's), fill up with no-ops, of
 * which those of several bytes end in a displacement of 0. */
static int begins_code(struct elf_image *image, uint64_t address)
{
    size_t available;
    const uint8_t *code = elf_image_code(image, address, &available);
    const uint8_t *before = elf_image_code(image, address - 1, &available);

    if (!code)
        return -ENOENT;
    return !code_is_trap(code) && (!before || code_ends_function(before));
}

/* Whether most entries are where code begins. */
static bool falls_on_code(struct elf_image *image, const struct gopclntab *table)
{
    uint64_t step = table->count / SAMPLES + 1, tried = 0, good = 0;

    for (uint64_t i = 0; i < table->count; i += step) {
        struct go_function function;
        int r;

        if (!go_table_function(table, i, &function) || function.entry == function.end)
            continue;
        r = begins_code(image, function.entry);
        if (r < 0)
            return false;
        tried++;
        good += (uint64_t)r;
    }
    return good * 10 >= tried * 7;
}

static bool accepts(struct elf_image *image, struct gopclntab *table, uint64_t text)
{
    table->text = text;
    return text && falls_on_code(image, table);
}

/* runtime.moduledata begins with a pointer to the table and has the text's begin among its words; which one
 * changes from version to version. */
static bool try_moduledata(struct elf_image *image, const struct code_map *map, struct gopclntab *table)
{
    uint64_t moduledata = image_pointer_to(image, table->address, 0), word;

    for (size_t i = 1; moduledata && i < MODULEDATA_WORDS; i++) {
        if (!image_pointer_at(image, moduledata + i * GO_WORD, &word))
            return false;
        if (code_map_find(map, word) && accepts(image, table, word))
            return true;
    }
    return false;
}

static bool find_text(struct elf_image *image, const struct code_map *map, struct gopclntab *table)
{
    uint64_t relocated;

    if (table->layout < GO_1_18)
        return falls_on_code(image, table);
    if (accepts(image, table, table->text))
        return true;
    if (image_relocation_at(image, table->address + TEXT_START_AT, &relocated) &&
        accepts(image, table, relocated))
        return true;
    for (size_t i = 0; i < map->count && i < TRIES_MAX; i++)
        if (!map->items[i].plt && accepts(image, table, map->items[i].start))
            return true;
    return try_moduledata(image, map, table);
}

/* ---------------------------------------------------------------------------------------------- finding it
 */

static struct gopclntab *try_at(struct elf_image *image, const struct code_map *map, uint64_t address,
                                const uint8_t *data, size_t size)
{
    AUTO_FREE struct gopclntab *table = NULL;

    if (!has_magic(data, size))
        return NULL;
    table = calloc(1, sizeof(*table));
    if (!table)
        return NULL;
    *table = (struct gopclntab){.data = data, .size = size, .address = address};
    if (!read_header(table) || table->count == 0 || table->count > size / (2 * go_table_entry_width(table)))
        return NULL;
    if (!is_sorted(table) || !find_text(image, map, table))
        return NULL;
    return take_pointer(table);
}

/* In .gopclntab, or .data.rel.ro.gopclntab of a PIE. */
static struct gopclntab *find_by_section(struct elf_image *image, const struct code_map *map)
{
    Elf *elf = elf_image_elf(image);
    Elf_Scn *section = NULL;
    size_t names, available;
    GElf_Shdr header;

    if (elf_getshdrstrndx(elf, &names) < 0)
        return NULL;
    while ((section = elf_nextscn(elf, section))) {
        const char *name = gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;
        const uint8_t *data;

        if (!name || (strcmp(name, ".gopclntab") != 0 && strcmp(name, ".data.rel.ro.gopclntab") != 0))
            continue;
        data = elf_image_bytes(image, header.sh_addr, &available);
        if (data)
            return try_at(image, map, header.sh_addr, data,
                          header.sh_size < available ? header.sh_size : available);
    }
    return NULL;
}

/* Wherever the magic number is; the table is aligned to 32 bytes. */
static struct gopclntab *find_by_magic(struct elf_image *image, const struct code_map *map)
{
    struct address_range range;
    unsigned tries = 0;
    bool executable;

    for (size_t i = 0; elf_image_segment(image, i, &range, &executable); i++) {
        size_t size = 0;
        const uint8_t *data = executable ? NULL : elf_image_bytes(image, range.start, &size);

        for (size_t at = -range.start & 31; data && at < size; at += 32) {
            struct gopclntab *table;

            if (!has_magic(data + at, size - at))
                continue;
            table = try_at(image, map, range.start + at, data + at, size - at);
            if (table || ++tries == TRIES_MAX)
                return table;
        }
    }
    return NULL;
}

static struct gopclntab *find_table(struct elf_image *image)
{
    CLEANUP(code_map_release) struct code_map map = {0};
    struct gopclntab *table;

    if (!elf_image_facts(image)->is_go || code_map_read(image, &map) < 0)
        return NULL;
    table = find_by_section(image, &map);
    return table ? table : find_by_magic(image, &map);
}

struct gopclntab *gopclntab_of(struct elf_image *image)
{
    static struct gopclntab none; /* it was looked for in vain */
    struct gopclntab *table = elf_image_part(image, IMAGE_PART_GOPCLNTAB);

    if (!table) {
        table = find_table(image);
        elf_image_keep_part(image, IMAGE_PART_GOPCLNTAB, table ? table : &none, table ? free : NULL);
    }
    return table == &none ? NULL : table;
}

/* ---------------------------------------------------------------------------------------------- functions */

/* Without the breakpoints that fill up to the next one. */
static uint64_t size_of(struct elf_image *image, const struct code_section *section, uint64_t entry,
                        uint64_t end)
{
    uint64_t size = (end < section->end ? end : section->end) - entry;
    size_t available;
    const uint8_t *code = elf_image_code(image, entry, &available);

    if (code && size <= available)
        while (size > 1 && code_is_trap(code + size - 1))
            size--;
    return size;
}

/* The linker's build id lies at the begin of the text and has a record, but is no code. */
static bool is_function(const char *name)
{
    return name && *name && strcmp(name, "go.buildid") != 0 && strcmp(name, "go:buildid") != 0;
}

/* Function `index` as others see it; false: it is none. */
static bool symbol_at(struct elf_image *image, const struct code_map *map, const struct gopclntab *table,
                      uint64_t index, struct go_symbol *ret_symbol)
{
    const struct code_section *section;
    struct go_function function;
    const char *name;

    if (!go_table_function(table, index, &function) || function.end == function.entry)
        return false;
    section = code_map_find(map, function.entry);
    name = go_table_name(table, &function);
    if (!section || !is_function(name))
        return false;
    *ret_symbol =
        (struct go_symbol){name, function.entry, size_of(image, section, function.entry, function.end)};
    return true;
}

int gopclntab_collect(struct elf_image *image, const struct code_map *map, struct function_list *list)
{
    const struct gopclntab *table = gopclntab_of(image);
    struct go_symbol symbol;

    for (uint64_t i = 0; table && i < table->count; i++)
        if (symbol_at(image, map, table, i, &symbol) &&
            function_list_add(list, symbol.name, symbol.address, symbol.size, 0, IMAGE_SOURCE_GOPCLNTAB) < 0)
            return -ENOMEM;
    return 0;
}

int gopclntab_symbols(struct elf_image *image, struct go_symbol **ret_symbols, size_t *ret_count)
{
    const struct gopclntab *table = gopclntab_of(image);
    CLEANUP(code_map_release) struct code_map map = {0};
    AUTO_FREE struct go_symbol *symbols = NULL;
    size_t count = 0, capacity = 0;

    if (!table)
        return -ENOENT;
    if (code_map_read(image, &map) < 0 || array_reserve(&symbols, &capacity, table->count) < 0)
        return -ENOMEM;
    for (uint64_t i = 0; i < table->count; i++)
        count += symbol_at(image, &map, table, i, &symbols[count]);
    *ret_symbols = take_pointer(symbols);
    *ret_count = count;
    return 0;
}
