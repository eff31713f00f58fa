/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "image/go/go_code.h"

#include <string.h>

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

static bool is_plain(const struct instruction *instruction, uint8_t opcode, bool wide)
{
    return !instruction->vex && !instruction->operand_size && instruction->opcode[0] == opcode &&
           !(instruction->rex & GO_REX_W) == !wide;
}

bool go_is_load(const struct instruction *instruction, bool wide, enum machine_register *ret_register,
                struct memory_operand *ret_memory)
{
    *ret_register = flow_reg_operand(instruction);
    return is_plain(instruction, 0x8b, wide) && instruction_memory(instruction, ret_memory);
}

bool go_is_store(const struct instruction *instruction, bool wide, enum machine_register *ret_register,
                 struct memory_operand *ret_memory)
{
    *ret_register = flow_reg_operand(instruction);
    return is_plain(instruction, 0x89, wide) && instruction_memory(instruction, ret_memory);
}

bool go_is_lea(const struct instruction *instruction, enum machine_register *ret_register,
               struct memory_operand *ret_memory)
{
    *ret_register = flow_reg_operand(instruction);
    return is_plain(instruction, 0x8d, true) && instruction_memory(instruction, ret_memory);
}

uint64_t go_lea_target(const struct instruction *instruction, enum machine_register *ret_register)
{
    struct memory_operand memory;

    if (!go_is_lea(instruction, ret_register, &memory) || memory.base != REGISTER_PC)
        return 0;
    return instruction->address + instruction->length + (uint64_t)(int64_t)memory.displacement;
}

bool go_is_field(const struct memory_operand *memory)
{
    return memory->base < REGISTER_PC && memory->index == REGISTER_NONE;
}

int64_t go_immediate(const struct instruction *instruction, size_t width)
{
    const uint8_t *at = instruction->code + instruction->length - width;
    int32_t wide;

    if (width == 1)
        return (int8_t)*at;
    memcpy(&wide, at, sizeof(wide));
    return wide;
}
