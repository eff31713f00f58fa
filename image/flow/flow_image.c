/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "image/flow/flow_image.h"

#include <errno.h>
#include <gelf.h>
#include <limits.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "image/flow/flow_changes.h"

#ifndef SHT_RELR /* glibc before 2.36 */
#define SHT_RELR 19
#endif

/* Bytes of a jump table that are looked at: more cases than that are no switch but a crafted file. */
#define TABLE_MAX (64 << 10)

/* Linkers make one segment of code, some packers a few. */
#define REGIONS_MAX 16

struct span {
    const uint8_t *bytes;
    size_t size;
    uint64_t address;
};

struct builder {
    struct elf_image *image;
    struct flow_map *map;
    struct span *data; /* PT_LOADs that are not code */
    size_t data_count;
    bool all_taken;
};

/* ---------------------------------------------------------------------------------------------- reading */

static void add_data(struct builder *builder, const GElf_Phdr *header)
{
    const uint8_t *bytes;
    size_t size;

    if (header->p_filesz == 0)
        return;
    bytes = elf_image_bytes(builder->image, header->p_vaddr, &size);
    if (bytes && size >= header->p_filesz)
        builder->data[builder->data_count++] = (struct span){bytes, header->p_filesz, header->p_vaddr};
    else
        builder->all_taken = false;
}

/* Code segments go into the map, the others are remembered. */
static int read_segments(struct builder *builder)
{
    Elf *elf = elf_image_elf(builder->image);
    GElf_Phdr header;
    size_t count, regions = 0;

    if (elf_getphdrnum(elf, &count) < 0 || count > INT_MAX)
        return 0;
    builder->data = calloc(count, sizeof(*builder->data));
    if (!builder->data)
        return -ENOMEM;
    for (int i = 0; i < (int)count; i++) {
        const uint8_t *code;
        size_t size;

        if (!gelf_getphdr(elf, i, &header) || header.p_type != PT_LOAD)
            continue;
        if (!(header.p_flags & PF_X)) {
            add_data(builder, &header);
            continue;
        }
        code = elf_image_code(builder->image, header.p_vaddr, &size);
        if (!code || ++regions > REGIONS_MAX)
            builder->all_taken = false;
        else if (flow_map_add(builder->map, code, size, header.p_vaddr) < 0)
            return -ENOMEM;
    }
    return 0;
}

/* ---------------------------------------------------------------------------------------------- taken */

/* A pointer in data. */
static void take_pointer_to(struct builder *builder, uint64_t address)
{
    flow_map_take(builder->map, address);
    flow_map_set(builder->map, address, FLOW_LISTED);
}

/* Pointers are aligned; what is not may still be one, in a packed structure, but leads into no loop. */
static void take_words(struct builder *builder)
{
    for (size_t i = 0; i < builder->data_count; i++) {
        const struct span *span = &builder->data[i];

        for (size_t at = 0; at + 8 <= span->size; at++) {
            uint64_t word;

            memcpy(&word, span->bytes + at, sizeof(word));
            if ((span->address + at) % 8 == 0)
                take_pointer_to(builder, word);
            else
                flow_map_set(builder->map, word, FLOW_TAKEN);
        }
    }
}

static void take_relocations(struct builder *builder, Elf_Scn *section)
{
    Elf_Data *data = elf_getdata(section, NULL);
    GElf_Rela relocation;

    if (!data) {
        builder->all_taken = false;
        return;
    }
    for (int i = 0; gelf_getrela(data, i, &relocation); i++)
        take_pointer_to(builder, (uint64_t)relocation.r_addend);
}

/* Undefined symbols with a value too: that is the address of a PLT stub which stands for the function. */
static void take_exports(struct builder *builder, Elf_Scn *section)
{
    Elf_Data *data = elf_getdata(section, NULL);
    GElf_Sym symbol;

    if (!data) {
        builder->all_taken = false;
        return;
    }
    for (int i = 0; gelf_getsym(data, i, &symbol); i++)
        flow_map_take(builder->map, symbol.st_value);
}

static void take_dynamic(struct builder *builder, Elf_Scn *section)
{
    Elf_Data *data = elf_getdata(section, NULL);
    GElf_Dyn entry;

    for (int i = 0; data && gelf_getdyn(data, i, &entry) && entry.d_tag != DT_NULL; i++)
        if (entry.d_tag == DT_INIT || entry.d_tag == DT_FINI)
            flow_map_take(builder->map, entry.d_un.d_ptr);
}

static void take_addresses(struct builder *builder)
{
    const struct elf_image_facts *facts = elf_image_facts(builder->image);
    Elf *elf = elf_image_elf(builder->image);
    Elf_Scn *section = NULL;
    bool has_exports = false, has_words = !facts->pie;
    GElf_Shdr header;

    flow_map_take(builder->map, facts->entry);
    while ((section = elf_nextscn(elf, section))) {
        if (!gelf_getshdr(section, &header) || !(header.sh_flags & SHF_ALLOC))
            continue; /* relocations that only a linker reads (--emit-relocs) among others */
        switch (header.sh_type) {
        case SHT_RELA:
            take_relocations(builder, section);
            break;
        case SHT_DYNSYM:
            has_exports = true;
            take_exports(builder, section);
            break;
        case SHT_DYNAMIC:
            take_dynamic(builder, section);
            break;
        case SHT_RELR:
            has_words = true;
            break;
        case SHT_REL: /* never used on x86-64 */
            builder->all_taken = false;
            break;
        default:
            break;
        }
    }
    if (has_words)
        take_words(builder);
    builder->all_taken &= has_exports || (facts->is_static && !facts->pie);
}

/* ---------------------------------------------------------------------------------------------- tables */

/* The bytes at `address`, in data or between code. */
static const uint8_t *bytes_at(const struct builder *builder, uint64_t address, size_t *ret_size)
{
    for (size_t i = 0; i < builder->data_count; i++) {
        const struct span *span = &builder->data[i];
        uint64_t at = address - span->address;

        if (at < span->size) {
            *ret_size = span->size - at;
            return span->bytes + at;
        }
    }
    return flow_map_code(builder->map, address, ret_size);
}

static void follow_table(struct builder *builder, uint64_t table)
{
    size_t size = 0;
    const uint8_t *bytes = bytes_at(builder, table, &size);

    for (size_t at = 0; bytes && at + 4 <= size && at < TABLE_MAX; at += 4) {
        int32_t distance;
        uint64_t target;

        memcpy(&distance, bytes + at, sizeof(distance));
        target = table + (uint64_t)(int64_t)distance;
        if (!flow_map_has(builder->map, target, FLOW_START))
            return;
        flow_map_set(builder->map, target, FLOW_TARGET);
        flow_map_set(builder->map, target, FLOW_LISTED);
    }
}

static int compare_addresses(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

    return (a > b) - (a < b);
}

static int follow_tables(struct builder *builder)
{
    size_t count;
    const uint64_t *leas = flow_map_leas(builder->map, &count);
    AUTO_FREE uint64_t *sorted = NULL;

    if (count == 0)
        return 0;
    sorted = malloc(count * sizeof(*sorted));
    if (!sorted)
        return -ENOMEM;
    memcpy(sorted, leas, count * sizeof(*sorted));
    qsort(sorted, count, sizeof(*sorted), compare_addresses);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || sorted[i] != sorted[i - 1])
            follow_table(builder, sorted[i]);
    return 0;
}

/* ---------------------------------------------------------------------------------------------- building */

static int build(struct builder *builder, const struct image_function *functions, size_t count)
{
    int r = read_segments(builder);
    bool relocated = false;

    if (r < 0)
        return r;
    r = flow_map_walk(builder->map, functions, count, !elf_image_facts(builder->image)->pie);
    if (r < 0)
        return r;
    take_addresses(builder);
    flow_changes_mark(builder->image, builder->map, &relocated);
    builder->all_taken &= !relocated;
    return follow_tables(builder);
}

int flow_image_map(struct elf_image *image, const struct image_function *functions, size_t count,
                   struct flow_map **ret_map, bool *ret_all_taken, struct error *err)
{
    AUTO_FLOW_MAP struct flow_map *map = NULL;
    struct builder builder = {.image = image, .all_taken = true};
    int r = flow_map_new(&map);

    if (r < 0)
        return error_no_memory(err);
    builder.map = map;
    r = build(&builder, functions, count);
    free(builder.data);
    if (r < 0)
        return error_no_memory(err);
    *ret_all_taken = builder.all_taken;
    *ret_map = take_pointer(map);
    return 0;
}
