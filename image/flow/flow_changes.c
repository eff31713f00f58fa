/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "image/flow/flow_changes.h"

#include <gelf.h>
#include <limits.h>
#include <string.h>

#include "base/array.h"
#include "image/arch/disasm.h"
#include "image/arch/elf_machine.h"
#include "image/elf/pointers.h"

/* More no-ops than that in a row are padding, or data. */
#define NOPS_MAX 128

/* What XRay's runtime overwrites: 11 bytes at entries and exits, two dozen at events. */
#define SLED_FUNCTION 11
#define SLED_EVENT 24
#define SLED_LAST_OF_FUNCTION 3 /* kinds up to this one are entries and exits */

struct marking {
    struct elf_image *image;
    struct flow_map *map;
    bool relocated;
};

static void mark(struct marking *marking, uint64_t address, uint64_t size)
{
    flow_map_set_range(marking->map, address, size, FLOW_CHANGES);
}

/* ---------------------------------------------------------------------------------------------- relocations
 */

static void mark_relocations(struct marking *marking, uint64_t table, uint64_t bytes)
{
    size_t available = 0, size;
    const uint8_t *data = elf_image_bytes(marking->image, table, &available);

    for (uint64_t at = 0; data && at + sizeof(Elf64_Rela) <= bytes && at + sizeof(Elf64_Rela) <= available;
         at += sizeof(Elf64_Rela)) {
        Elf64_Rela relocation;

        memcpy(&relocation, data + at, sizeof(relocation));
        if (!flow_map_code(marking->map, relocation.r_offset, &size))
            continue;
        mark(marking, relocation.r_offset, elf_relocation_bytes(relocation.r_info));
        marking->relocated = true;
    }
}

/* The dynamic section tells where the tables are, also where the section headers were cut off. */
static void read_dynamic(struct marking *marking, const GElf_Phdr *header)
{
    Elf_Data *data = elf_getdata_rawchunk(elf_image_elf(marking->image), (int64_t)header->p_offset,
                                          header->p_filesz, ELF_T_DYN);
    uint64_t tables[2] = {0}, sizes[2] = {0};
    GElf_Dyn entry;

    for (int i = 0; data && gelf_getdyn(data, i, &entry) && entry.d_tag != DT_NULL; i++) {
        if (entry.d_tag == DT_RELA || entry.d_tag == DT_JMPREL)
            tables[entry.d_tag == DT_JMPREL] = entry.d_un.d_ptr;
        else if (entry.d_tag == DT_RELASZ || entry.d_tag == DT_PLTRELSZ)
            sizes[entry.d_tag == DT_PLTRELSZ] = entry.d_un.d_val;
    }
    for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
        mark_relocations(marking, tables[i], sizes[i]);
}

static void read_segments(struct marking *marking)
{
    Elf *elf = elf_image_elf(marking->image);
    GElf_Phdr header;
    size_t count;

    if (elf_getphdrnum(elf, &count) < 0 || count > INT_MAX)
        return;
    for (int i = 0; i < (int)count; i++) {
        if (!gelf_getphdr(elf, i, &header))
            continue;
        if (header.p_type == PT_DYNAMIC)
            read_dynamic(marking, &header);
        else if (header.p_type == PT_LOAD && header.p_flags & PF_X && header.p_flags & PF_W)
            mark(marking, header.p_vaddr, header.p_filesz);
    }
}

/* ---------------------------------------------------------------------------------------------- sleds */

/* An entry of xray_instr_map, compiler-rt's struct XRaySledEntry. */
struct sled {
    uint64_t address, function;
    uint8_t kind, always, version, padding[13];
};
_Static_assert(sizeof(struct sled) == 32, "sled");

static void mark_sleds(struct marking *marking, const GElf_Shdr *section)
{
    size_t available = 0;
    const uint8_t *data = elf_image_bytes(marking->image, section->sh_addr, &available);
    struct sled sled;

    for (uint64_t at = 0; data && at + sizeof(sled) <= section->sh_size && at + sizeof(sled) <= available;
         at += sizeof(sled)) {
        memcpy(&sled, data + at, sizeof(sled));
        if (sled.version >= 2)
            sled.address += section->sh_addr + at; /* from the entry on */
        else if (!image_pointer_at(marking->image, section->sh_addr + at, &sled.address))
            continue;
        mark(marking, sled.address, sled.kind <= SLED_LAST_OF_FUNCTION ? SLED_FUNCTION : SLED_EVENT);
    }
}

/* No-ops from `address` on, an ENDBR64 among them: nothing tells how many of them are meant. */
static void mark_nops(struct marking *marking, uint64_t address)
{
    struct instruction instruction;
    size_t size = 0, at = 0;
    const uint8_t *code = flow_map_code(marking->map, address, &size);

    while (code && at < size && at < NOPS_MAX &&
           disasm_skim(code + at, size - at, address + at, &instruction) == 0 &&
           (instruction.kind == INSTRUCTION_NOP || instruction.kind == INSTRUCTION_ENDBR)) {
        if (instruction.kind == INSTRUCTION_NOP)
            mark(marking, address + at, instruction.length);
        at += instruction.length;
    }
}

/* The call of __fentry__ or mcount, or the no-op of its size. */
static void mark_call(struct marking *marking, uint64_t address)
{
    mark(marking, address, 5);
}

/* A section of addresses. */
static void mark_listed(struct marking *marking, const GElf_Shdr *section,
                        void (*mark_one)(struct marking *marking, uint64_t address))
{
    uint64_t address;

    for (uint64_t at = 0; at + sizeof(address) <= section->sh_size; at += sizeof(address)) {
        if (!image_pointer_at(marking->image, section->sh_addr + at, &address))
            return;
        mark_one(marking, address);
    }
}

static void read_sections(struct marking *marking)
{
    Elf *elf = elf_image_elf(marking->image);
    Elf_Scn *section = NULL;
    GElf_Shdr header;
    size_t names;

    if (elf_getshdrstrndx(elf, &names))
        return;
    while ((section = elf_nextscn(elf, section))) {
        const char *name = gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;

        if (!name || !(header.sh_flags & SHF_ALLOC))
            continue;
        if (!strcmp(name, "xray_instr_map"))
            mark_sleds(marking, &header);
        else if (!strcmp(name, "__patchable_function_entries"))
            mark_listed(marking, &header, mark_nops);
        else if (!strcmp(name, "__mcount_loc"))
            mark_listed(marking, &header, mark_call);
    }
}

void flow_changes_mark(struct elf_image *image, struct flow_map *map, bool *ret_relocated)
{
    struct marking marking = {.image = image, .map = map};

    read_segments(&marking);
    read_sections(&marking);
    *ret_relocated = marking.relocated;
}
