/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * PLT stubs. Each linker has its own, of its own size, with and without IBT, MPX or retpolines, for lazy and
 * eager binding; some say so in the section's header and some do not. They have one thing in common, by which
 * they are found: they leave through a slot of the GOT (plt_entry.h), and the relocation of that slot names
 * the function.
 *
 * So the sections are decoded from their beginning. What leads up to such an exit is the stub's beginning:
 * what stands behind the exit or the jump before it, without padding. A stub reaches up to the next one: what
 * follows its exit is how a lazy one calls the dynamic linker.
 */
#include <errno.h>
#include <gelf.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "image/arch/plt_entry.h"
#include "image/functions/got_slots.h"

#define STUB_PROLOGUE_MAX 16 /* bytes before the exit; more is no stub's */

struct stub {
    uint64_t address, slot;
};

struct stubs {
    struct stub *items;
    size_t count, capacity;
};

static void stubs_release(struct stubs *stubs)
{
    free(stubs->items);
}

/* ---------------------------------------------------------------------------------------------- decoding */

/* Where a walk through a section stands. */
struct walk {
    uint64_t begin;  /* of what may be a stub */
    uint64_t loaded; /* the slot that a register was loaded from, 0: none */
};

/* The slot that the instruction leaves through, 0: it does not. */
static uint64_t exit_slot(const struct instruction *instruction, const struct walk *walk)
{
    uint64_t slot;

    if (plt_entry_exit(instruction, &slot))
        return slot;
    return instruction->kind == INSTRUCTION_CALL || instruction->kind == INSTRUCTION_JUMP ? walk->loaded : 0;
}

static bool is_padding(const struct instruction *instruction, const struct walk *walk)
{
    return instruction->kind == INSTRUCTION_TRAP ||
           (instruction->kind == INSTRUCTION_NOP && instruction->address == walk->begin);
}

static int follow(struct walk *walk, const struct instruction *instruction, struct stubs *stubs)
{
    uint64_t behind = instruction->address + instruction->length, slot = exit_slot(instruction, walk);

    if (slot && instruction->address - walk->begin <= STUB_PROLOGUE_MAX) {
        if (array_reserve(&stubs->items, &stubs->capacity, stubs->count + 1) < 0)
            return -ENOMEM;
        stubs->items[stubs->count++] = (struct stub){walk->begin, slot};
    }
    if (instruction_leaves(instruction) || instruction_is_call(instruction) || is_padding(instruction, walk))
        *walk = (struct walk){.begin = behind};
    else if (plt_entry_load(instruction, &slot))
        walk->loaded = slot;
    return 0;
}

static int walk_section(const uint8_t *code, size_t size, uint64_t address, struct stubs *stubs)
{
    struct walk walk = {.begin = address};
    struct instruction instruction;

    for (size_t at = 0; at < size; at += instruction.length) {
        if (disasm_skim(code + at, size - at, address + at, &instruction) < 0) {
            instruction.length = 1;
            walk = (struct walk){.begin = address + at + 1};
        } else if (follow(&walk, &instruction, stubs) < 0) {
            return -ENOMEM;
        }
    }
    return 0;
}

/* ---------------------------------------------------------------------------------------------- naming */

static int read_stubs(struct elf_image *image, const GElf_Shdr *header, const struct got_slots *slots,
                      struct function_list *list)
{
    CLEANUP(stubs_release) struct stubs stubs = {0};
    size_t available;
    const uint8_t *code = elf_image_code(image, header->sh_addr, &available);

    if (!code)
        return 0;
    if (available > header->sh_size)
        available = header->sh_size;
    if (walk_section(code, available, header->sh_addr, &stubs) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < stubs.count; i++) {
        const struct stub *stub = &stubs.items[i];
        uint64_t end = i + 1 < stubs.count ? stub[1].address : header->sh_addr + available;
        const struct got_slot *slot = got_slots_find(slots, stub->slot);

        if (slot && got_slot_add_function(slot, stub->address, end - stub->address, 0, list) < 0)
            return -ENOMEM;
    }
    return 0;
}

int plt_collect(struct elf_image *image, const struct code_map *map, struct function_list *list,
                struct error *err)
{
    CLEANUP(got_slots_release) struct got_slots slots = {0};
    Elf *elf = elf_image_elf(image);
    Elf_Scn *section = NULL;
    size_t names;

    if (elf_getshdrstrndx(elf, &names) < 0)
        return 0;
    if (got_slots_read(image, list, &slots) < 0)
        return error_no_memory(err);
    while (slots.count && (section = elf_nextscn(elf, section))) {
        GElf_Shdr header;
        const char *name = gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;

        if (!name || !is_plt_section(name) || header.sh_type != SHT_PROGBITS)
            continue;
        if (read_stubs(image, &header, &slots, list) < 0)
            return error_no_memory(err);
    }
    return stubless_collect(image, map, &slots, list) < 0 ? error_no_memory(err) : 0;
}
