/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "image/go/go_code.h"

#include "base/array.h"

int go_code_read(struct elf_image *image, uint64_t address, uint64_t size, struct go_code *code)
{
    size_t available;
    const uint8_t *bytes = elf_image_code(image, address, &available);
    uint64_t at = 0;

    code->count = 0;
    if (!bytes)
        return 0;
    if (size > available)
        size = available;
    while (at < size) {
        if (array_reserve(&code->items, &code->capacity, code->count + 1) < 0)
            return -ENOMEM;
        if (disasm_skim(bytes + at, size - at, address + at, &code->items[code->count]) < 0)
            return 0;
        at += code->items[code->count++].length;
    }
    return 0;
}

void go_code_release(struct go_code *code)
{
    free(code->items);
    *code = (struct go_code){0};
}

size_t go_code_find(const struct go_code *code, uint64_t address)
{
    size_t low = 0, high = code->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (code->items[middle].address < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < code->count && code->items[low].address == address ? low : code->count;
}

bool go_is_field(const struct memory_operand *memory)
{
    return memory->base < MACHINE_REGISTERS && memory->index == REGISTER_NONE;
}
