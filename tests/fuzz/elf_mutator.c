/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "elf_mutator.h"

#include <elf.h>
#include <stdbool.h>
#include <string.h>

#define ARRAY_LENGTH(array) (sizeof(array) / sizeof(*(array)))

struct file {
    uint8_t *bytes;
    size_t size;
    uint64_t random;
};

struct field {
    uint8_t offset, width;
};

static const struct field header_fields[] = {{16, 2}, {24, 8}, {32, 8}, {40, 8}, {54, 2},
                                             {56, 2}, {58, 2}, {60, 2}, {62, 2}};
static const struct field segment_fields[] = {{0, 4}, {4, 4}, {8, 8}, {16, 8}, {32, 8}, {40, 8}, {48, 8}};
static const struct field section_fields[] = {{0, 4},  {4, 4},  {8, 8},  {16, 8}, {24, 8},
                                              {32, 8}, {40, 4}, {44, 4}, {48, 8}, {56, 8}};
static const struct field symbol_fields[] = {{0, 4}, {4, 1}, {5, 1}, {6, 2}, {8, 8}, {16, 8}};
static const struct field relocation_fields[] = {{0, 8}, {8, 4}, {12, 4}, {16, 8}};
static const struct field word_fields[] = {{0, 8}, {8, 8}}; /* of a dynamic entry, and of whatever else */
static const struct field note_fields[] = {{0, 4}, {4, 4}, {8, 4}};
static const struct field packed_fields[] = {{0, 4}, {8, 8}, {16, 8}};

static uint64_t next(struct file *file)
{
    file->random = file->random * 6364136223846793005u + 1442695040888963407u;
    return file->random >> 24;
}

static size_t below(struct file *file, size_t count)
{
    return count ? next(file) % count : 0;
}

/* ---------------------------------------------------------------------------------------------- values */

static uint64_t read_value(const struct file *file, size_t at, size_t width)
{
    uint64_t value = 0;

    memcpy(&value, file->bytes + at, width);
    return value;
}

/* What breaks things most often: edges of types and of the file, neighbours, what other fields have. */
static uint64_t bad_value(struct file *file, uint64_t now)
{
    static const uint64_t edges[] = {
        0,          1,          2,          7,         0x7f,       0x80,       0xff,
        0x7fff,     0xffff,     0xff00,     0xfff1,    0x7fffffff, 0x80000000, 0xffffffff,
        1ull << 32, 1ull << 40, 1ull << 47, INT64_MAX, 1ull << 63, UINT64_MAX, UINT64_MAX - 7};

    switch (below(file, 8)) {
    case 0:
        return now + 1;
    case 1:
        return now - 1;
    case 2:
        return now * 2;
    case 3:
        return file->size + below(file, 3) - 1;
    case 4:
        return now ^ 1ull << below(file, 64);
    case 5: /* of another place */
        return file->size > 8 ? read_value(file, below(file, file->size - 8) & ~(size_t)7, 8) : 0;
    default:
        return edges[below(file, ARRAY_LENGTH(edges))];
    }
}

static void change(struct file *file, uint64_t at, size_t width)
{
    uint64_t value;

    if (at > file->size || width > file->size - at)
        return;
    value = bad_value(file, read_value(file, at, width));
    memcpy(file->bytes + at, &value, width);
}

static void change_field(struct file *file, uint64_t at, const struct field *fields, size_t count)
{
    const struct field *field = &fields[below(file, count)];

    if (at < file->size)
        change(file, at + field->offset, field->width);
}

/* ---------------------------------------------------------------------------------------------- tables */

static bool get_section(struct file *file, size_t index, Elf64_Shdr *ret_section)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)file->bytes;
    uint64_t at = header->e_shoff + index * sizeof(*ret_section);

    if (index >= header->e_shnum || at > file->size || sizeof(*ret_section) > file->size - at)
        return false;
    memcpy(ret_section, file->bytes + at, sizeof(*ret_section));
    return ret_section->sh_offset < file->size && ret_section->sh_size;
}

/* Bytes as such: instructions, DWARF, call frame information, tables of Go. */
static void change_bytes(struct file *file, size_t at, size_t size)
{
    size_t length = 1 + below(file, 16), place = at + below(file, size);

    if (length > file->size - place)
        length = file->size - place;
    switch (below(file, 6)) {
    case 0:
        change(file, place, (size_t)1 << below(file, 4));
        break;
    case 1: /* numbers of any length (LEB128) become longer */
        memset(file->bytes + place, 0xff, length);
        break;
    case 2:
        memset(file->bytes + place, 0, length);
        break;
    case 3:
        memmove(file->bytes + place, file->bytes + at + below(file, size - length < size ? size - length : 1),
                length);
        break;
    case 4:
        for (size_t i = 0; i < length; i++)
            file->bytes[place + i] = (uint8_t)next(file);
        break;
    default:
        file->bytes[place] ^= (uint8_t)(1u << below(file, 8));
    }
}

static void change_entry(struct file *file, const Elf64_Shdr *section)
{
    uint64_t at = section->sh_offset, size = section->sh_size;

    if (size > file->size - at)
        size = file->size - at;
    if (section->sh_flags & SHF_COMPRESSED)
        change_field(file, at, packed_fields, ARRAY_LENGTH(packed_fields));
    else if (section->sh_type == SHT_SYMTAB || section->sh_type == SHT_DYNSYM)
        change_field(file, at + below(file, size / 24) * 24, symbol_fields, ARRAY_LENGTH(symbol_fields));
    else if (section->sh_type == SHT_RELA)
        change_field(file, at + below(file, size / 24) * 24, relocation_fields,
                     ARRAY_LENGTH(relocation_fields));
    else if (section->sh_type == SHT_DYNAMIC)
        change_field(file, at + below(file, size / 16) * 16, word_fields, ARRAY_LENGTH(word_fields));
    else if (section->sh_type == SHT_NOTE)
        change_field(file, at, note_fields, ARRAY_LENGTH(note_fields));
    else
        change_bytes(file, at, size);
}

/* Sections are as likely whatever their size: a note as much as all of the code. */
static void change_section(struct file *file, bool header)
{
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)file->bytes;
    size_t index = below(file, head->e_shnum);
    Elf64_Shdr section;

    if (header)
        change_field(file, head->e_shoff + index * sizeof(section), section_fields,
                     ARRAY_LENGTH(section_fields));
    else if (get_section(file, index, &section))
        change_entry(file, &section);
}

/* A section gets the extent of another one, or all of it. */
static void exchange_sections(struct file *file)
{
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)file->bytes;
    uint64_t from = head->e_shoff + below(file, head->e_shnum) * sizeof(Elf64_Shdr),
             to = head->e_shoff + below(file, head->e_shnum) * sizeof(Elf64_Shdr);
    size_t skipped = below(file, 2) ? 24 : 0, length = skipped ? 16 : sizeof(Elf64_Shdr);

    if (from < file->size && to < file->size && skipped + length <= file->size - from &&
        skipped + length <= file->size - to)
        memmove(file->bytes + to + skipped, file->bytes + from + skipped, length);
}

static void change_something(struct file *file)
{
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)file->bytes;

    if (file->size < sizeof(*head)) {
        change_bytes(file, 0, file->size);
        return;
    }
    switch (below(file, 16)) {
    case 0:
        change_field(file, 0, header_fields, ARRAY_LENGTH(header_fields));
        break;
    case 1:
    case 2:
        change_field(file, head->e_phoff + below(file, head->e_phnum) * sizeof(Elf64_Phdr), segment_fields,
                     ARRAY_LENGTH(segment_fields));
        break;
    case 3:
    case 4:
        change_section(file, true);
        break;
    case 5:
        exchange_sections(file);
        break;
    case 6:
        change_bytes(file, 0, file->size);
        break;
    case 7:
        if (below(file, 8) == 0)
            file->size -= below(file, file->size / 2);
        break;
    default:
        change_section(file, false);
    }
}

size_t elf_mutate(uint8_t *data, size_t size, unsigned seed)
{
    struct file file = {data, size, seed};
    size_t count;

    next(&file);
    count = 1 + below(&file, 8);
    while (count-- && file.size)
        change_something(&file);
    return file.size;
}
