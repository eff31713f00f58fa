/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Functions of the symbol tables. .symtab has everything unless the image is stripped, .dynsym what is
 * exported; both are read, since a stripped image may keep an unusual part of either. What strip took may be
 * in files that belong to the image. Symbols of one address are one function with a best name and aliases.
 */
#include <errno.h>
#include <gelf.h>
#include <limits.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "image/elf/debug_files.h"
#include "image/functions/sources.h"

/* How public a name is. */
enum rank {
    RANK_PUBLIC,
    RANK_OLD_VERSION, /* kept for programs that were linked long ago: new ones get another function by this
                         name */
    RANK_LOCAL,
    RANK_NO_TYPE, /* may be anything: a mark of the linker's, a label */
};

struct symbol {
    const char *name; /* in libelf's copy of the string table */
    size_t length;    /* without the symbol version */
    uint64_t address;
    uint64_t size;
    uint64_t section_end;
    unsigned char rank; /* enum rank */
    bool weak;
    enum image_source source;
    bool ifunc;
};

struct reader {
    const struct code_map *map;
    struct symbol *symbols;
    size_t count, capacity;
};

static void reader_release(struct reader *reader)
{
    free(reader->symbols);
}

/* ---------------------------------------------------------------------------------------------- reading */

/* Whether the symbol's version is not the default one of its name: memcpy@GLIBC_2.2.5, not
 * memcpy@@GLIBC_2.14. `versions` is the .gnu.version beside a .dynsym, or NULL. */
static bool is_old_version(const char *name, Elf_Data *versions, int index)
{
    const char *at = strchr(name, '@');
    GElf_Versym version;

    if (at && at > name)
        return at[1] != '@';
    return versions && gelf_getversym(versions, index, &version) && version & 0x8000;
}

static unsigned char rank_of(const GElf_Sym *symbol, const char *name, Elf_Data *versions, int index)
{
    if (GELF_ST_TYPE(symbol->st_info) == STT_NOTYPE)
        return RANK_NO_TYPE;
    switch (GELF_ST_BIND(symbol->st_info)) {
    case STB_GLOBAL:
    case STB_GNU_UNIQUE:
    case STB_WEAK:
        return is_old_version(name, versions, index) ? RANK_OLD_VERSION : RANK_PUBLIC;
    default:
        return RANK_LOCAL;
    }
}

/* Assembly may have symbols without a type. */
static bool may_be_function(const GElf_Sym *symbol)
{
    unsigned char type = GELF_ST_TYPE(symbol->st_info);

    return (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE) &&
           symbol->st_shndx != SHN_UNDEF && symbol->st_shndx != SHN_ABS && symbol->st_shndx != SHN_COMMON;
}

/* memcpy@@GLIBC_2.14 in .symtab is memcpy; a name that begins with @ is just odd. */
static size_t unversioned_length(const char *name)
{
    const char *at = strchr(name, '@');

    return at && at > name ? (size_t)(at - name) : strlen(name);
}

/* The .gnu.version of a .dynsym, or NULL. */
static Elf_Data *versions_of(Elf *elf, Elf_Scn *symbols)
{
    Elf_Scn *section = NULL;
    GElf_Shdr header;

    while ((section = elf_nextscn(elf, section)))
        if (gelf_getshdr(section, &header) && header.sh_type == SHT_GNU_versym &&
            header.sh_link == elf_ndxscn(symbols))
            return elf_getdata(section, NULL);
    return NULL;
}

static int read_table(struct reader *reader, Elf *elf, Elf_Scn *section, const GElf_Shdr *header,
                      enum image_source source)
{
    Elf_Data *data = elf_getdata(section, NULL), *versions = versions_of(elf, section);
    GElf_Sym symbol;

    if (!data)
        return 0;
    for (int i = 0; i < INT_MAX && gelf_getsym(data, i, &symbol); i++) {
        const struct code_section *code =
            may_be_function(&symbol) ? code_map_find(reader->map, symbol.st_value) : NULL;
        const char *name = code ? elf_strptr(elf, header->sh_link, symbol.st_name) : NULL;
        uint64_t room;

        if (!name || !*name || (code->plt && GELF_ST_TYPE(symbol.st_info) == STT_NOTYPE))
            continue;
        if (array_reserve(&reader->symbols, &reader->capacity, reader->count + 1) < 0)
            return -ENOMEM;
        room = code->end - symbol.st_value;
        reader->symbols[reader->count++] = (struct symbol){
            .name = name,
            .length = unversioned_length(name),
            .address = symbol.st_value,
            .size = GELF_ST_TYPE(symbol.st_info) == STT_NOTYPE ? 0
                    : symbol.st_size > room                    ? room
                                                               : symbol.st_size,
            .section_end = code->end,
            .rank = rank_of(&symbol, name, versions, i),
            .weak = GELF_ST_BIND(symbol.st_info) == STB_WEAK,
            .source = source,
            .ifunc = GELF_ST_TYPE(symbol.st_info) == STT_GNU_IFUNC,
        };
    }
    return 0;
}

/* Reads the tables of `elf`; its .symtab counts as `source`. */
static int read_tables(struct reader *reader, Elf *elf, enum image_source source)
{
    Elf_Scn *section = NULL;
    GElf_Shdr header;
    int r = 0;

    while (r == 0 && elf && (section = elf_nextscn(elf, section))) {
        if (!gelf_getshdr(section, &header))
            continue;
        if (header.sh_type == SHT_SYMTAB)
            r = read_table(reader, elf, section, &header, source);
        else if (header.sh_type == SHT_DYNSYM)
            r = read_table(reader, elf, section, &header, IMAGE_SOURCE_DYNSYM);
    }
    return r;
}

static int read_files(struct reader *reader, struct elf_image *image)
{
    int r = read_tables(reader, elf_image_elf(image), IMAGE_SOURCE_SYMTAB);

    if (r == 0 && !elf_image_facts(image)->has_symtab)
        r = read_tables(reader, debug_files_separate(image), IMAGE_SOURCE_DEBUG_FILE);
    if (r == 0 && !elf_image_facts(image)->has_symtab)
        r = read_tables(reader, debug_files_mini(image), IMAGE_SOURCE_MINI_DEBUG);
    return r;
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

/* By address; at one address the best name first, in an order that depends on nothing but the symbols: public
 * names before others, puts before _IO_puts, strchr before index, which is weak. */
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
    if (a->weak != b->weak)
        return a->weak - b->weak;
    if (a->length != b->length)
        return a->length < b->length ? -1 : 1;
    return compare_names(a, b);
}

static bool is_tail_of(const struct symbol *symbol, const struct symbol *whole)
{
    return symbol->length < whole->length &&
           !memcmp(symbol->name, whole->name + (whole->length - symbol->length), symbol->length);
}

/* Which of `count` symbols of one address, sorted, has the name to show. It is the first one, unless that is
 * the name that a library has for itself with a prefix before the weak one that programs use: PMPI_Send,
 * MPI_Send. */
static size_t best_name(const struct symbol *symbols, size_t count)
{
    for (size_t i = 1; i < count && !symbols->weak && symbols[i].rank == symbols->rank; i++)
        if (symbols[i].weak && is_tail_of(&symbols[i], symbols))
            return i;
    return 0;
}

/* gcc names the parts it moves away NAME.cold or NAME.cold.N. */
static bool is_fragment(const struct symbol *symbol)
{
    const char *cold = memmem(symbol->name, symbol->length, ".cold", 5);
    const char *rest = cold ? cold + 5 : NULL;

    return rest && (rest == symbol->name + symbol->length || *rest == '.');
}

/* Whether an earlier one of the sorted symbols has the name of symbols[index]. */
static bool is_repeated(const struct symbol *symbols, size_t index)
{
    struct symbol key = symbols[index];

    if (index && compare_names(&symbols[index - 1], &key) == 0)
        return true;
    for (int rank = 0; rank <= symbols[index].rank; rank++)
        for (int weak = 0; weak < 2; weak++) {
            key.rank = (unsigned char)rank;
            key.weak = weak;
            if (bsearch(&key, symbols, index, sizeof(key), compare_symbols))
                return true;
        }
    return false;
}

/* Keeps the names of `count` symbols of one address, each once, without that of symbols[best]. */
static int collect_aliases(const struct symbol *symbols, size_t count, size_t best,
                           struct image_function *function)
{
    size_t kept = 0;

    function->aliases = calloc(count, sizeof(*function->aliases)); /* the last entry stays NULL */
    if (!function->aliases)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        if (compare_names(&symbols[i], &symbols[best]) == 0 || is_repeated(symbols, i))
            continue;
        function->aliases[kept] = strndup(symbols[i].name, symbols[i].length);
        if (!function->aliases[kept++])
            return -ENOMEM;
    }
    if (kept == 0) {
        free(function->aliases);
        function->aliases = NULL;
    }
    return 0;
}

/* What the symbols of one address say about it. A size is not among them. */
static unsigned flags_of(const struct symbol *symbols, size_t count)
{
    unsigned flags = symbols->rank == RANK_NO_TYPE ? IMAGE_FUNCTION_NO_TYPE : 0;

    for (size_t i = 0; i < count; i++) {
        if (symbols[i].ifunc)
            flags |= IMAGE_FUNCTION_IFUNC;
        if (is_fragment(&symbols[i]))
            flags |= IMAGE_FUNCTION_FRAGMENT;
        if (symbols[i].rank < RANK_LOCAL)
            flags |= IMAGE_FUNCTION_PROVED;
    }
    return flags;
}

/* Makes one function of `count` symbols of one address. One without a size reaches to the end of its section
 * here. */
static int merge(const struct symbol *symbols, size_t count, struct function_list *list)
{
    size_t best = best_name(symbols, count);
    AUTO_FREE char *name = strndup(symbols[best].name, symbols[best].length);
    enum image_source source = symbols[0].source;
    unsigned flags = flags_of(symbols, count);
    uint64_t size = 0;
    int r;

    if (!name)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        if (symbols[i].size > size)
            size = symbols[i].size;
        if (symbols[i].source < source)
            source = symbols[i].source;
    }
    if (size == 0) {
        size = symbols[0].section_end - symbols[0].address;
        flags |= IMAGE_FUNCTION_SIZE_GUESSED;
    } else {
        flags &= ~(unsigned)IMAGE_FUNCTION_PROVED;
    }
    r = function_list_add(list, name, symbols[0].address, size, flags, source);
    if (r < 0 || count == 1)
        return r;
    return collect_aliases(symbols, count, best, &list->items[list->count - 1]);
}

static int merge_all(const struct reader *reader, struct function_list *list)
{
    for (size_t first = 0, behind; first < reader->count; first = behind) {
        const struct symbol *symbols = reader->symbols + first;
        int r;

        for (behind = first + 1; behind < reader->count; behind++)
            if (reader->symbols[behind].address != symbols->address)
                break;
        r = merge(symbols, behind - first, list);
        if (r < 0)
            return r;
    }
    return 0;
}

int symbols_collect(struct elf_image *image, const struct code_map *map, struct function_list *list,
                    struct error *err)
{
    CLEANUP(reader_release) struct reader reader = {.map = map};
    int r = read_files(&reader, image);

    if (r == 0 && reader.count) {
        qsort(reader.symbols, reader.count, sizeof(*reader.symbols), compare_symbols);
        r = merge_all(&reader, list);
    }
    return r < 0 ? error_no_memory(err) : 0;
}
