/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Functions among symbols that do not say what they are. Assembly is often written without `.type` and
 * `.size`, and its symbols may be labels in the middle of a function as well. One that a `call` of the image
 * leads to is a function. The call must be an instruction: one is met on the way through the code from the
 * nearest symbol before it.
 */
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "image/arch/code_bytes.h"
#include "image/arch/disasm.h"
#include "image/functions/sources.h"

#define WALK_MAX (64u << 20) /* bytes of code that are read in all to show that calls are instructions */

struct labels {
    struct elf_image *image;
    struct function_list *list;
    size_t *items; /* indexes of those that have to be proved, in the list, sorted by address */
    size_t count, capacity;
    size_t walked; /* bytes */
};

static void labels_release(struct labels *labels)
{
    free(labels->items);
}

/* Collects what has no size and begins outside of functions that have one. */
static int collect(struct labels *labels)
{
    uint64_t reached = 0;

    for (size_t i = 0; i < labels->list->count; i++) {
        const struct image_function *function = &labels->list->items[i];

        if (!(function->flags & IMAGE_FUNCTION_SIZE_GUESSED)) {
            if (function->address + function->size > reached)
                reached = function->address + function->size;
            continue;
        }
        if (function->address < reached || function->flags & IMAGE_FUNCTION_PROVED)
            continue;
        if (array_reserve(&labels->items, &labels->capacity, labels->count + 1) < 0)
            return -ENOMEM;
        labels->items[labels->count++] = i;
    }
    return 0;
}

/* The label at `address` that is not proved yet, or NULL. */
static struct image_function *label_at(const struct labels *labels, uint64_t address)
{
    size_t low = 0, high = labels->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        struct image_function *function = &labels->list->items[labels->items[middle]];

        if (function->address == address)
            return function->flags & IMAGE_FUNCTION_PROVED ? NULL : function;
        if (function->address < address)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* The nearest symbol at or before `address`, or NULL. */
static const struct image_function *symbol_before(const struct function_list *list, uint64_t address)
{
    size_t low = 0, high = list->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (list->items[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? &list->items[low - 1] : NULL;
}

/* Whether an instruction begins at `address`, as the code is read from the symbol before it. */
static bool is_instruction(struct labels *labels, uint64_t address)
{
    const struct image_function *from = symbol_before(labels->list, address);
    struct instruction instruction;
    const uint8_t *code;
    size_t size = 0, at = 0;

    code = from ? elf_image_code(labels->image, from->address, &size) : NULL;
    if (!code || labels->walked > WALK_MAX)
        return false;
    labels->walked += address - from->address;
    while (at < size && from->address + at < address) {
        if (disasm_skim(code + at, size - at, from->address + at, &instruction) < 0)
            return false;
        at += instruction.length;
    }
    return from->address + at == address;
}

/* Looks for calls of labels in a section. */
static void read_calls(struct labels *labels, const struct code_section *section)
{
    size_t size;
    const uint8_t *code = elf_image_code(labels->image, section->start, &size);

    if (code && size > section->end - section->start)
        size = section->end - section->start;
    for (size_t at = 0; code && at + CODE_CALL_BYTES <= size; at++) {
        uint64_t address = section->start + at;
        struct image_function *label;

        if (!code_is_call(code + at))
            continue;
        label = label_at(labels, code_call_target(code + at, address));
        if (label && is_instruction(labels, address))
            label->flags |= IMAGE_FUNCTION_PROVED;
    }
}

/* Drops symbols without a type that nothing has proved. Where a size has turned up no proof is needed any
 * more. */
static void drop_labels(struct function_list *list)
{
    size_t kept = 0;

    for (size_t i = 0; i < list->count; i++) {
        struct image_function *function = &list->items[i];

        if (function->flags & IMAGE_FUNCTION_NO_TYPE && !(function->flags & IMAGE_FUNCTION_PROVED)) {
            image_function_clear(function);
            continue;
        }
        if (!(function->flags & IMAGE_FUNCTION_SIZE_GUESSED))
            function->flags &= ~(unsigned)IMAGE_FUNCTION_PROVED;
        list->items[kept++] = *function;
    }
    list->count = kept;
}

int labels_resolve(struct elf_image *image, const struct code_map *map, struct function_list *list)
{
    CLEANUP(labels_release) struct labels labels = {.image = image, .list = list};

    if (collect(&labels) < 0)
        return -ENOMEM;
    for (size_t i = 0; labels.count && i < map->count; i++)
        read_calls(&labels, &map->items[i]);
    drop_labels(list);
    return 0;
}
