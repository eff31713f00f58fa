/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Indirect functions (STT_GNU_IFUNC). Their symbol names a resolver, which runs once, when the program is
 * loaded, and returns one of several implementations: strlen is __strlen_avx2 or __strlen_sse2. Calls of
 * strlen are calls of those, so they get its names as aliases. Which ones they are the resolver's code says:
 * it takes their addresses.
 */
#include <errno.h>
#include <string.h>

#include "image/arch/operands.h"
#include "image/functions/got_slots.h"

#define RESOLVER_MAX 4096 /* bytes that are read of one */

static struct image_function *function_at(const struct function_list *list, uint64_t address)
{
    const struct image_function *found = image_functions_find(list->items, list->count, address);
    size_t index = found ? (size_t)(found - list->items) : 0;

    return found && found->address == address ? &list->items[index] : NULL;
}

static struct image_function *function_named(const struct function_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (!strcmp(list->items[i].name, name))
            return &list->items[i];
    return NULL;
}

/* The function whose address the instruction takes, by itself or out of a slot, or NULL. */
static struct image_function *taken_function(const struct function_list *list, const struct got_slots *slots,
                                             const struct instruction *instruction)
{
    enum machine_register reg;
    const struct got_slot *slot;
    struct memory_operand memory;
    uint64_t reached;
    int64_t number;

    if (instruction_makes_fixed_address(instruction, &reg, &reached))
        return function_at(list, reached);
    if (instruction_loads_number(instruction, &reg, &number))
        return function_at(list, (uint64_t)number);
    if (!instruction_loads(instruction, true, &reg, &memory) ||
        !instruction_fixed_memory(instruction, &reached))
        return NULL;
    slot = got_slots_find(slots, reached);
    return slot ? function_named(list, slot->name) : NULL;
}

static bool has_name(const struct image_function *function, const char *name)
{
    if (!strcmp(function->name, name))
        return true;
    for (char **alias = function->aliases; alias && *alias; alias++)
        if (!strcmp(*alias, name))
            return true;
    return false;
}

/* Gives the implementation the names of the indirect function. */
static int name_implementation(struct image_function *implementation, const struct image_function *indirect)
{
    int r = has_name(implementation, indirect->name)
                ? 0
                : image_function_add_alias(implementation, indirect->name);

    for (char **alias = indirect->aliases; r == 0 && alias && *alias; alias++)
        if (!has_name(implementation, *alias))
            r = image_function_add_alias(implementation, *alias);
    return r;
}

static int read_resolver(struct elf_image *image, const struct function_list *list,
                         const struct got_slots *slots, const struct image_function *indirect)
{
    size_t size = 0, room = indirect->size < RESOLVER_MAX ? indirect->size : RESOLVER_MAX;
    const uint8_t *code = elf_image_code(image, indirect->address, &size);
    struct instruction instruction;
    int r = 0;

    if (size > room)
        size = room;
    for (size_t at = 0; code && r == 0 && at < size; at += instruction.length) {
        struct image_function *taken;

        if (disasm_skim(code + at, size - at, indirect->address + at, &instruction) < 0)
            break;
        taken = taken_function(list, slots, &instruction);
        if (taken && !(taken->flags & (IMAGE_FUNCTION_IFUNC | IMAGE_FUNCTION_PLT)))
            r = name_implementation(taken, indirect);
    }
    return r;
}

int implementations_name(struct elf_image *image, struct function_list *list)
{
    CLEANUP(got_slots_release) struct got_slots slots = {0};
    bool any = false;
    int r = 0;

    for (size_t i = 0; i < list->count && !any; i++)
        any = list->items[i].flags & IMAGE_FUNCTION_IFUNC;
    if (any)
        r = got_slots_read(image, list, &slots);
    for (size_t i = 0; any && r == 0 && i < list->count; i++)
        if (list->items[i].flags & IMAGE_FUNCTION_IFUNC)
            r = read_resolver(image, list, &slots, &list->items[i]);
    return r;
}
