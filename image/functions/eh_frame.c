/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * libdw cuts the section into entries; what is in them is decoded here, since only the extent and the state
 * at the first byte are wanted, and evaluating every entry's whole program would take a hundred times as
 * long.
 */
#include "image/functions/eh_frame.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <gelf.h>
#include <limits.h>
#include <string.h>

#include "base/array.h"
#include "image/arch/registers.h"

/* What is left to read; `bad` once something was read beyond the end. */
struct cursor {
    const uint8_t *at;
    const uint8_t *end;
    bool bad;
};

struct reader {
    Elf_Data data; /* the section */
    uint64_t address;
    const struct code_map *map;
    struct fde_list *list;
};

/* How the entries of one CIE are to be read. */
struct cie {
    Dwarf_Off offset;
    bool usable;
    bool has_augmentation; /* 'z': entries have augmentation data of their own */
    bool signal;
    uint8_t encoding;
    struct cursor initial; /* instructions that come before those of every entry */
};

/* ---------------------------------------------------------------------------------------------- decoding */

static uint64_t read_fixed(struct cursor *cursor, size_t size)
{
    uint64_t value = 0;

    if (cursor->bad || (size_t)(cursor->end - cursor->at) < size) {
        cursor->bad = true;
        return 0;
    }
    memcpy(&value, cursor->at, size);
    cursor->at += size;
    return value;
}

/* ULEB128, also to pass over a signed one. Bits above the 64th are dropped. */
static uint64_t read_leb128(struct cursor *cursor)
{
    uint64_t value = 0;

    for (unsigned shift = 0;; shift += 7) {
        uint8_t byte = (uint8_t)read_fixed(cursor, 1);

        if (cursor->bad)
            return 0;
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
}

static void skip(struct cursor *cursor, uint64_t size)
{
    if (cursor->bad || size > (uint64_t)(cursor->end - cursor->at))
        cursor->bad = true;
    else
        cursor->at += size;
}

/* A value in the format of the low half of `encoding`. */
static uint64_t read_value(struct cursor *cursor, uint8_t encoding)
{
    switch (encoding & 0x0f) {
    case DW_EH_PE_absptr:
    case DW_EH_PE_udata8:
    case DW_EH_PE_sdata8:
        return read_fixed(cursor, 8);
    case DW_EH_PE_udata4:
        return read_fixed(cursor, 4);
    case DW_EH_PE_sdata4:
        return (uint64_t)(int64_t)(int32_t)read_fixed(cursor, 4);
    case DW_EH_PE_udata2:
        return read_fixed(cursor, 2);
    case DW_EH_PE_sdata2:
        return (uint64_t)(int64_t)(int16_t)read_fixed(cursor, 2);
    default:
        cursor->bad = true; /* no compiler writes LEB128 here: the linker could not fill it in */
        return 0;
    }
}

/* The address at `cursor`; `place` is where that itself is loaded. */
static uint64_t read_address(struct cursor *cursor, uint8_t encoding, uint64_t place)
{
    uint64_t value = read_value(cursor, encoding);

    switch (encoding & 0xf0) {
    case DW_EH_PE_absptr:
        return value;
    case DW_EH_PE_pcrel:
        return place + value;
    default:
        cursor->bad = true;
        return 0;
    }
}

/* ---------------------------------------------------------------------------------------------- entries */

static uint64_t address_of(const struct reader *reader, const uint8_t *place)
{
    return reader->address + (uint64_t)(place - (const uint8_t *)reader->data.d_buf);
}

static void read_augmentation(const Dwarf_CIE *entry, struct cie *cie)
{
    const char *letters = entry->augmentation;
    struct cursor cursor = {entry->augmentation_data,
                            entry->augmentation_data + entry->augmentation_data_size, false};

    cie->initial = (struct cursor){entry->initial_instructions, entry->initial_instructions_end, false};
    cie->encoding = DW_EH_PE_absptr;
    cie->has_augmentation = *letters == 'z';
    cie->usable = cie->has_augmentation || *letters == '\0';
    for (letters += cie->has_augmentation; *letters && cie->usable; letters++) {
        if (*letters == 'R')
            cie->encoding = (uint8_t)read_fixed(&cursor, 1);
        else if (*letters == 'P')
            read_value(&cursor, (uint8_t)read_fixed(&cursor, 1));
        else if (*letters == 'L')
            read_fixed(&cursor, 1);
        else if (*letters == 'S')
            cie->signal = true;
        else if (*letters != 'B')
            break; /* unknown ones and what follows are not needed, as their size is given */
        cie->usable = !cursor.bad;
    }
}

static bool read_cie(struct reader *reader, Dwarf_Off offset, struct cie *cie)
{
    unsigned char ident[EI_NIDENT] = {[EI_CLASS] = ELFCLASS64, [EI_DATA] = ELFDATA2LSB};
    Dwarf_CFI_Entry entry;
    Dwarf_Off next;

    if (cie->offset == offset)
        return cie->usable;
    *cie = (struct cie){.offset = offset};
    if (dwarf_next_cfi(ident, &reader->data, true, offset, &next, &entry) == 0 && dwarf_cfi_cie_p(&entry))
        read_augmentation(&entry.cie, cie);
    return cie->usable;
}

/* Whether the instruction `code` leaves the frame as a call makes it. Reads its operands. */
static bool keeps_call_frame(struct cursor *cursor, uint8_t code)
{
    switch (code) {
    case DW_CFA_nop:
    case DW_CFA_remember_state:
    case DW_CFA_restore_state:
        return true;
    case DW_CFA_undefined: /* the return address of the entry point */
    case DW_CFA_same_value:
    case DW_CFA_restore_extended:
    case DW_CFA_GNU_args_size:
        read_leb128(cursor);
        return true;
    case DW_CFA_def_cfa:
        return read_leb128(cursor) == DWARF_STACK_REGISTER && read_leb128(cursor) == CALL_PUSHES;
    case DW_CFA_def_cfa_register:
        return read_leb128(cursor) == DWARF_STACK_REGISTER;
    case DW_CFA_def_cfa_offset:
        return read_leb128(cursor) == CALL_PUSHES;
    case DW_CFA_offset | DWARF_RETURN_COLUMN:
        read_leb128(cursor);
        return true;
    default: /* saved registers, other rules for the frame */
        return (code & 0xc0) == DW_CFA_restore;
    }
}

/* The distance that an advancing instruction goes; -1: `code` is another one. */
static int64_t advance(struct cursor *cursor, uint8_t code)
{
    switch (code) {
    case DW_CFA_set_loc:
        return 1;
    case DW_CFA_advance_loc1:
        return (int64_t)read_fixed(cursor, 1);
    case DW_CFA_advance_loc2:
        return (int64_t)read_fixed(cursor, 2);
    case DW_CFA_advance_loc4:
        return (int64_t)read_fixed(cursor, 4);
    default:
        return (code & 0xc0) == DW_CFA_advance_loc ? code & 0x3f : -1;
    }
}

/* Whether the frame is still that of a call after the instructions that hold at the first byte. */
static bool stays_call_frame(struct cursor cursor)
{
    while (!cursor.bad && cursor.at < cursor.end) {
        uint8_t code = (uint8_t)read_fixed(&cursor, 1);
        int64_t distance = advance(&cursor, code);

        if (distance > 0)
            break;
        if (distance < 0 && !keeps_call_frame(&cursor, code))
            return cursor.bad;
    }
    return true;
}

/* gas gives fragments a CIE of their own where several begin with the same frame. */
static enum fde_entry entry_of(const struct cie *cie, struct cursor instructions)
{
    if (cie->signal)
        return FDE_SIGNAL;
    return stays_call_frame(cie->initial) && stays_call_frame(instructions) ? FDE_CALLED : FDE_CONTINUED;
}

static int add_fde(struct reader *reader, const struct cie *cie, const Dwarf_FDE *entry)
{
    struct cursor cursor = {entry->start, entry->end, false};
    struct fde fde = {.address = read_address(&cursor, cie->encoding, address_of(reader, entry->start))};
    const struct code_section *section = code_map_find(reader->map, fde.address);

    fde.size = read_value(&cursor, cie->encoding);
    if (cie->has_augmentation)
        skip(&cursor, read_leb128(&cursor));
    if (cursor.bad || fde.size == 0 || !section || section->plt)
        return 0;
    if (fde.size > section->end - fde.address)
        fde.size = section->end - fde.address;
    fde.entry = entry_of(cie, cursor);
    if (array_reserve(&reader->list->items, &reader->list->capacity, reader->list->count + 1) < 0)
        return -ENOMEM;
    reader->list->items[reader->list->count++] = fde;
    return 0;
}

static int read_entries(struct reader *reader)
{
    unsigned char ident[EI_NIDENT] = {[EI_CLASS] = ELFCLASS64, [EI_DATA] = ELFDATA2LSB};
    struct cie cie = {.offset = (Dwarf_Off)-1};
    Dwarf_Off offset = 0, next = 0;

    for (;; offset = next) {
        Dwarf_CFI_Entry entry;
        int r = dwarf_next_cfi(ident, &reader->data, true, offset, &next, &entry);

        if (r > 0 || next <= offset)
            return 0;
        if (r < 0 || dwarf_cfi_cie_p(&entry) || !read_cie(reader, entry.fde.CIE_pointer, &cie))
            continue;
        if (add_fde(reader, &cie, &entry.fde) < 0)
            return -ENOMEM;
    }
}

/* ---------------------------------------------------------------------------------------------- the section
 */

/* By PT_GNU_EH_FRAME, whose .eh_frame_hdr points to it; its end is then not known, but entries end with a
 * zero. */
static bool find_by_header(struct elf_image *image, uint64_t *ret_address)
{
    size_t count, available;
    GElf_Phdr header;

    if (elf_getphdrnum(elf_image_elf(image), &count) < 0)
        return false;
    for (size_t i = 0; i < count && i < INT_MAX; i++) {
        const uint8_t *bytes;
        struct cursor cursor;

        if (!gelf_getphdr(elf_image_elf(image), (int)i, &header) || header.p_type != PT_GNU_EH_FRAME)
            continue;
        bytes = elf_image_bytes(image, header.p_vaddr, &available);
        if (!bytes || available < 8 || bytes[0] != 1) /* version; then come three encodings */
            return false;
        cursor = (struct cursor){bytes + 4, bytes + available, false};
        *ret_address = read_address(&cursor, bytes[1], header.p_vaddr + 4);
        return !cursor.bad;
    }
    return false;
}

static bool find_section(struct elf_image *image, uint64_t *ret_address, uint64_t *ret_size)
{
    Elf *elf = elf_image_elf(image);
    Elf_Scn *section = NULL;
    GElf_Shdr header;
    size_t names;

    *ret_size = UINT64_MAX;
    if (elf_getshdrstrndx(elf, &names) < 0)
        return find_by_header(image, ret_address);
    while ((section = elf_nextscn(elf, section))) {
        const char *name = gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;

        if (!name || strcmp(name, ".eh_frame") != 0 || header.sh_type == SHT_NOBITS)
            continue;
        *ret_address = header.sh_addr;
        *ret_size = header.sh_size;
        return true;
    }
    return find_by_header(image, ret_address);
}

/* By address; of two for one address the longer first. */
static int compare(const void *left, const void *right)
{
    const struct fde *a = left, *b = right;

    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    return (a->size < b->size) - (a->size > b->size);
}

static void put_in_order(struct fde_list *list)
{
    size_t kept = 0;

    if (list->count)
        qsort(list->items, list->count, sizeof(*list->items), compare);
    for (size_t i = 0; i < list->count; i++)
        if (!kept || list->items[kept - 1].address != list->items[i].address)
            list->items[kept++] = list->items[i];
    list->count = kept;
}

int eh_frame_read(struct elf_image *image, const struct code_map *map, struct fde_list *list)
{
    struct reader reader = {.map = map, .list = list};
    uint64_t size;
    size_t available;
    const uint8_t *bytes;
    int r;

    if (!find_section(image, &reader.address, &size))
        return 0;
    bytes = elf_image_bytes(image, reader.address, &available);
    if (!bytes)
        return 0;
    reader.data = (Elf_Data){
        .d_buf = (void *)bytes,
        .d_type = ELF_T_BYTE,
        .d_version = EV_CURRENT,
        .d_size = size < available ? size : available,
        .d_align = 1,
    };
    r = read_entries(&reader);
    if (r == 0)
        put_in_order(list);
    return r;
}

void fde_list_release(struct fde_list *list)
{
    free(list->items);
}
