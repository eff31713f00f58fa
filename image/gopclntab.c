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
#include "image/gopclntab.h"

#include <errno.h>
#include <gelf.h>
#include <limits.h>
#include <string.h>

#define HEADER_SIZE 8
#define WORD 8
#define TEXT_START_AT (HEADER_SIZE + 2 * WORD)
#define NAME_MAX_BYTES 65536 /* generic functions' names have thousands */
#define MODULEDATA_WORDS 48
#define PIECES_MAX 4096      /* of a pc table: the first ones are wanted */
#define TRIES_MAX 16         /* tables, and begins of text: more are only in crafted files */
#define PCDATA_INLINE_TREE 2 /* runtime.PCDATA_InlTreeIndex (abi.PCDATA_InlTreeIndex since go 1.21) */

enum layout { GO_1_2, GO_1_16, GO_1_18, GO_1_20 };

struct gopclntab {
    const uint8_t *data;
    size_t size;
    uint64_t address;
    enum layout layout;
    uint64_t count;                           /* functions */
    uint64_t text;                            /* what entries are relative to: 0 before 1.18 */
    uint64_t names, units, files, pcs, funcs; /* offsets of the parts */
};

struct go_function {
    uint64_t entry;
    uint64_t end;
    uint64_t record; /* offset of its struct _func in the table */
};

void gopclntab_free(struct gopclntab *table)
{
    free(table);
}

/* ---------------------------------------------------------------------------------------------- reading */

/* The number of `width` bytes at `offset`; false where the table ends before. */
static bool number_at(const struct gopclntab *table, uint64_t offset, size_t width, uint64_t *ret_value)
{
    uint64_t value = 0;

    if (offset > table->size || table->size - offset < width)
        return false;
    memcpy(&value, table->data + offset, width);
    *ret_value = value;
    return true;
}

static const char *string_at(const struct gopclntab *table, uint64_t offset)
{
    size_t left;

    if (offset >= table->size)
        return NULL;
    left = table->size - offset;
    if (!memchr(table->data + offset, '\0', left < NAME_MAX_BYTES ? left : NAME_MAX_BYTES))
        return NULL;
    return (const char *)table->data + offset;
}

static size_t entry_width(const struct gopclntab *table)
{
    return table->layout >= GO_1_18 ? 4 : WORD;
}

static bool function_at(const struct gopclntab *table, uint64_t index, struct go_function *ret_function)
{
    size_t width = entry_width(table);
    uint64_t place = table->funcs + (table->layout == GO_1_2 ? HEADER_SIZE + WORD : 0) + index * 2 * width;
    uint64_t entry, record, end;

    if (index >= table->count || !number_at(table, place, width, &entry) ||
        !number_at(table, place + width, width, &record) || !number_at(table, place + 2 * width, width, &end))
        return false;
    *ret_function = (struct go_function){table->text + entry, table->text + end, table->funcs + record};
    return true;
}

/* Field `index` of a record's 4-byte fields behind the entry: 0 name, 3 pcsp, 4 pcfile, 5 pcln, 6 npcdata,
 * 7 the unit, 8 the line (1.20). */
static bool field_at(const struct gopclntab *table, const struct go_function *function, unsigned index,
                     uint64_t *ret_value)
{
    return number_at(table, function->record + entry_width(table) + 4 * (uint64_t)index, 4, ret_value);
}

static const char *name_of(const struct gopclntab *table, const struct go_function *function)
{
    uint64_t offset;

    return field_at(table, function, 0, &offset) ? string_at(table, table->names + offset) : NULL;
}

/* ---------------------------------------------------------------------------------------------- the header
 */

static bool read_header(struct gopclntab *table)
{
    uint64_t words[7];
    bool has_text;

    switch (table->data[0]) {
    case 0xfb:
        table->layout = GO_1_2;
        return number_at(table, HEADER_SIZE, WORD, &table->count);
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
    if (!number_at(table, HEADER_SIZE, WORD, &table->count) ||
        (has_text && !number_at(table, TEXT_START_AT, WORD, &table->text)))
        return false;
    for (size_t i = 0; i < 5; i++) {
        if (!number_at(table, HEADER_SIZE + (2 + has_text + i) * WORD, WORD, &words[i]) ||
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
    static const uint8_t rest[] = {0xff, 0xff, 0xff, 0, 0, 1, WORD};

    return size > HEADER_SIZE + WORD && memcmp(data + 1, rest, sizeof(rest)) == 0 &&
           (data[0] == 0xfb || data[0] == 0xfa || data[0] == 0xf0 || data[0] == 0xf1);
}

/* Entries must rise, as the runtime looks them up by bisection. */
static bool is_sorted(const struct gopclntab *table)
{
    struct go_function function;

    for (uint64_t i = 0; i < table->count; i++)
        if (!function_at(table, i, &function) || function.end < function.entry)
            return false;
    return true;
}

/* ---------------------------------------------------------------------------------------------- the text */

/* The addend of the relocation that fills in the pointer at `place`. */
static bool relocation_at(struct elf_image *image, uint64_t place, uint64_t *ret_value)
{
    Elf *elf = elf_image_elf(image);
    Elf_Scn *section = NULL;
    GElf_Shdr header;
    GElf_Rela relocation;

    while ((section = elf_nextscn(elf, section))) {
        Elf_Data *data;

        if (!gelf_getshdr(section, &header) || header.sh_type != SHT_RELA)
            continue;
        data = elf_getdata(section, NULL);
        for (int i = 0; data && i < INT_MAX && gelf_getrela(data, i, &relocation); i++) {
            if (relocation.r_offset != place || GELF_R_TYPE(relocation.r_info) != R_X86_64_RELATIVE)
                continue;
            *ret_value = (uint64_t)relocation.r_addend;
            return true;
        }
    }
    return false;
}

/* The place of a pointer to `target`, by relocation or as it is in the file; 0: there is none. */
static uint64_t pointer_to(struct elf_image *image, uint64_t target)
{
    Elf *elf = elf_image_elf(image);
    Elf_Scn *section = NULL;
    struct address_range range;
    GElf_Shdr header;
    GElf_Rela relocation;
    bool executable;

    for (size_t i = 0; elf_image_segment(image, i, &range, &executable); i++) {
        size_t size;
        const uint8_t *bytes = executable ? NULL : elf_image_bytes(image, range.start, &size);

        for (size_t at = 0; bytes && at + WORD <= size; at += WORD)
            if (memcmp(bytes + at, &target, WORD) == 0)
                return range.start + at;
    }
    while ((section = elf_nextscn(elf, section))) {
        Elf_Data *data;

        if (!gelf_getshdr(section, &header) || header.sh_type != SHT_RELA)
            continue;
        data = elf_getdata(section, NULL);
        for (int i = 0; data && i < INT_MAX && gelf_getrela(data, i, &relocation); i++)
            if (GELF_R_TYPE(relocation.r_info) == R_X86_64_RELATIVE &&
                (uint64_t)relocation.r_addend == target)
                return relocation.r_offset;
    }
    return 0;
}

enum { SAMPLES = 256, INT3 = 0xcc, RET = 0xc3 };

/* Whether code can begin at `address`: Go fills up behind a function with int3. */
static int begins_code(struct elf_image *image, uint64_t address)
{
    size_t available;
    const uint8_t *code = elf_image_code(image, address, &available);
    const uint8_t *before = elf_image_code(image, address - 1, &available);

    if (!code)
        return -ENOENT;
    return *code != INT3 && (!before || *before == INT3 || *before == RET);
}

/* Whether most entries are where code begins. */
static bool falls_on_code(struct elf_image *image, const struct gopclntab *table)
{
    uint64_t step = table->count / SAMPLES + 1, tried = 0, good = 0;

    for (uint64_t i = 0; i < table->count; i += step) {
        struct go_function function;
        int r;

        if (!function_at(table, i, &function) || function.entry == function.end)
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
    uint64_t moduledata = pointer_to(image, table->address), word;

    for (size_t i = 1; moduledata && i < MODULEDATA_WORDS; i++) {
        size_t available;
        const uint8_t *bytes = elf_image_bytes(image, moduledata + i * WORD, &available);

        if (!bytes || available < WORD)
            return false;
        memcpy(&word, bytes, WORD);
        if (!word && !relocation_at(image, moduledata + i * WORD, &word))
            continue;
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
    if (relocation_at(image, table->address + TEXT_START_AT, &relocated) && accepts(image, table, relocated))
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
    if (!read_header(table) || table->count == 0 || table->count > size / (2 * entry_width(table)))
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

static const struct gopclntab *table_of(struct elf_image *image)
{
    struct image_cache *cache = elf_image_cache(image);
    CLEANUP(code_map_release) struct code_map map = {0};

    if (cache->gopclntab || cache->no_gopclntab)
        return cache->gopclntab;
    cache->no_gopclntab = true;
    if (!elf_image_facts(image)->is_go || code_map_read(image, &map) < 0)
        return NULL;
    cache->gopclntab = find_by_section(image, &map);
    if (!cache->gopclntab)
        cache->gopclntab = find_by_magic(image, &map);
    return cache->gopclntab;
}

/* ---------------------------------------------------------------------------------------------- functions */

/* Without the int3 that fill up to the next one. */
static uint64_t size_of(struct elf_image *image, const struct code_section *section, uint64_t entry,
                        uint64_t end)
{
    uint64_t size = (end < section->end ? end : section->end) - entry;
    size_t available;
    const uint8_t *code = elf_image_code(image, entry, &available);

    if (code && size <= available)
        while (size > 1 && code[size - 1] == INT3)
            size--;
    return size;
}

/* The linker's build id lies at the begin of the text and has a record, but is no code. */
static bool is_function(const char *name)
{
    return name && *name && strcmp(name, "go.buildid") != 0 && strcmp(name, "go:buildid") != 0;
}

int gopclntab_collect(struct elf_image *image, const struct code_map *map, struct function_list *list)
{
    const struct gopclntab *table = table_of(image);
    struct go_function function;

    for (uint64_t i = 0; table && i < table->count; i++) {
        const struct code_section *section;
        const char *name;

        if (!function_at(table, i, &function) || function.end == function.entry)
            continue;
        section = code_map_find(map, function.entry);
        name = name_of(table, &function);
        if (!section || !is_function(name))
            continue;
        if (function_list_add(list, name, function.entry,
                              size_of(image, section, function.entry, function.end), 0,
                              IMAGE_SOURCE_GOPCLNTAB) < 0)
            return -ENOMEM;
    }
    return 0;
}

/* ---------------------------------------------------------------------------------------------- lines */

static bool unsigned_leb128_at(const struct gopclntab *table, uint64_t *offset, uint32_t *ret_value)
{
    uint32_t value = 0;

    for (unsigned shift = 0; shift < 35; shift += 7) {
        uint64_t byte;

        if (!number_at(table, (*offset)++, 1, &byte))
            return false;
        if (shift < 32)
            value |= (uint32_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *ret_value = value;
            return true;
        }
    }
    return false;
}

/* A walk over a pc table: pairs of a zigzag step of the value and a distance, which end with a 0. */
struct walk {
    uint64_t offset;
    int32_t value;
    uint64_t from, until; /* distances from the function's entry for which the value holds */
    unsigned pieces;
};

static struct walk walk_begin(const struct gopclntab *table, uint64_t offset)
{
    return (struct walk){.offset = table->pcs + offset, .value = -1};
}

static bool walk_next(const struct gopclntab *table, struct walk *walk)
{
    uint32_t step, length;

    if (walk->pieces == PIECES_MAX || !unsigned_leb128_at(table, &walk->offset, &step) ||
        (step == 0 && walk->pieces > 0) || !unsigned_leb128_at(table, &walk->offset, &length))
        return false;
    walk->pieces++;
    walk->value = (int32_t)((uint32_t)walk->value + (step & 1 ? ~(step >> 1) : step >> 1));
    walk->from = walk->until;
    walk->until += length;
    return true;
}

/* The value that the pc table at `offset` has at `distance`. */
static bool value_at(const struct gopclntab *table, uint64_t offset, uint64_t distance, int32_t *ret_value)
{
    struct walk walk = walk_begin(table, offset);

    while (walk_next(table, &walk)) {
        if (distance < walk.until) {
            *ret_value = walk.value;
            return true;
        }
    }
    return false;
}

/* The distance of the function's first instruction that was not inlined into it: only there the tables speak
 * of the function itself. 0 when nothing is known. */
static uint64_t first_own_code(const struct gopclntab *table, const struct go_function *function)
{
    /* Behind the 4-byte fields come {function id, flag, two bytes}, and the offsets of npcdata pc tables. */
    unsigned fields = table->layout == GO_1_20 ? 10 : 9;
    uint64_t tables, offset;
    struct walk walk;

    if (table->layout < GO_1_18 || !field_at(table, function, 6, &tables) || tables <= PCDATA_INLINE_TREE ||
        !field_at(table, function, fields + PCDATA_INLINE_TREE, &offset) || offset == 0)
        return 0;
    walk = walk_begin(table, offset);
    while (walk_next(table, &walk))
        if (walk.value < 0 && walk.from < walk.until)
            return walk.from;
    return 0;
}

/* The file that number `number` of the function's unit stands for. */
static const char *file_of(const struct gopclntab *table, const struct go_function *function, int32_t number)
{
    uint64_t unit = 0, offset;

    if (table->layout == GO_1_2) {
        uint64_t files; /* its offset lies behind the last function's end */

        if (number <= 0 || !number_at(table, HEADER_SIZE + WORD + (2 * table->count + 1) * WORD, 4, &files) ||
            !number_at(table, files + 4 * (uint64_t)number, 4, &offset))
            return NULL;
        return string_at(table, offset);
    }
    if (number < 0 || !field_at(table, function, 7, &unit) ||
        !number_at(table, table->units + 4 * (unit + (uint64_t)number), 4, &offset))
        return NULL;
    return string_at(table, table->files + offset);
}

/* The last one at `address`: empty ones come before. */
static bool find_function(const struct gopclntab *table, uint64_t address, struct go_function *ret_function)
{
    uint64_t low = 0, high = table->count;

    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        struct go_function function;

        if (!function_at(table, middle, &function))
            return false;
        if (function.entry <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low && function_at(table, low - 1, ret_function) && ret_function->entry == address;
}

bool gopclntab_source(struct elf_image *image, uint64_t address, const char **ret_file, unsigned *ret_line)
{
    const struct gopclntab *table = table_of(image);
    uint64_t files, lines, own, declared = 0;
    struct go_function function;
    int32_t number, line;
    const char *file;

    if (!table || !find_function(table, address, &function))
        return false;
    own = first_own_code(table, &function);
    if (!field_at(table, &function, 4, &files) || !field_at(table, &function, 5, &lines) ||
        !value_at(table, files, own, &number) || !value_at(table, lines, own, &line))
        return false;
    file = file_of(table, &function, number);
    if (!file)
        return false;
    if (table->layout == GO_1_20)
        field_at(table, &function, 8, &declared);
    *ret_file = file;
    *ret_line = declared && declared <= INT32_MAX ? (unsigned)declared : line > 0 ? (unsigned)line : 0;
    return true;
}
