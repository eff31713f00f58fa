/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to image/: the slots of the GOT that hold addresses of functions, and whose. */
#ifndef TRACECTL_IMAGE_FUNCTIONS_GOT_SLOTS_H
#define TRACECTL_IMAGE_FUNCTIONS_GOT_SLOTS_H

#include "image/functions/sources.h"

struct got_slot {
    uint64_t address;
    const char *name; /* in libelf's copy of the string table, or a function's of the list */
    char **aliases;   /* that function's, or NULL */
};

struct got_slots {
    struct got_slot *items; /* by address */
    size_t count, capacity;
};

void got_slots_release(struct got_slots *slots);

/* Reads the relocations: those that name a symbol, and those of indirect functions that `functions`, sorted
 * by address, has a name for. `slots` is filled in from empty and borrows names of both. 0 or -ENOMEM. */
int got_slots_read(struct elf_image *image, const struct function_list *functions, struct got_slots *slots);

/* Appends the function NAME@plt of a slot, with its aliases; `flags` besides IMAGE_FUNCTION_PLT. 0 or
 * -ENOMEM. */
int got_slot_add_function(const struct got_slot *slot, uint64_t address, uint64_t size, unsigned flags,
                          struct function_list *list);

/* The functions that code outside of stubs calls through slots. 0 or -ENOMEM. */
int stubless_collect(struct elf_image *image, const struct code_map *map, const struct got_slots *slots,
                     struct function_list *list);

/* The slot at `address`, or NULL. */
const struct got_slot *got_slots_find(const struct got_slots *slots, uint64_t address);

#endif
