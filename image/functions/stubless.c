/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Imported functions that are called without a stub, as gcc -fno-plt and Rust do: through a slot of the GOT. Each
 * becomes NAME@plt as well, at the address of its slot, so that whatever selects and compares calls of
 * libraries treats both alike. Who wants to see its calls looks for such instructions in the code
 * (collector/plan/got_calls.h).
 */
#include <errno.h>
#include <string.h>

#include "image/functions/got_slots.h"

#define CALL_BYTES 6
#define SLOT_BYTES 8

/* The C library's start-up code calls __libc_start_main this way in every program: it is not the program's
 * own call. */
#define START_UP_BYTES 64

/* Notes the slots that calls and jumps of a section refer to. */
static void read_section(struct elf_image *image, const struct code_section *section,
                         const struct got_slots *slots, bool *called)
{
    uint64_t entry = elf_image_facts(image)->entry;
    size_t size;
    const uint8_t *code = elf_image_code(image, section->start, &size);

    if (code && size > section->end - section->start)
        size = section->end - section->start;
    for (size_t at = 0; code && at + CALL_BYTES <= size; at++) {
        uint64_t address = section->start + at;
        const struct got_slot *slot;
        int32_t distance;

        if (code[at] != 0xff || (code[at + 1] != 0x15 && code[at + 1] != 0x25) ||
            address - entry < START_UP_BYTES)
            continue;
        memcpy(&distance, code + at + 2, sizeof(distance));
        slot = got_slots_find(slots, address + CALL_BYTES + (uint64_t)(int64_t)distance);
        if (slot)
            called[slot - slots->items] = true;
    }
}

int stubless_collect(struct elf_image *image, const struct code_map *map, const struct got_slots *slots,
                     struct function_list *list)
{
    AUTO_FREE bool *called = calloc(slots->count + 1, sizeof(*called));
    int r = called ? 0 : -ENOMEM;

    for (size_t i = 0; r == 0 && i < map->count; i++)
        if (!map->items[i].plt)
            read_section(image, &map->items[i], slots, called);
    for (size_t i = 0; r == 0 && i < slots->count; i++)
        if (called[i])
            r = got_slot_add_function(&slots->items[i], slots->items[i].address, SLOT_BYTES,
                                      IMAGE_FUNCTION_NO_STUB, list);
    return r;
}
