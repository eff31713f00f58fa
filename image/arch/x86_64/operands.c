/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "image/arch/operands.h"

#include "image/arch/x86_64/flow_length.h"
#include "image/arch/x86_64/form.h"

/* ---------------------------------------------------------------------------------------------- memory */

bool form_has_modrm(const struct form *form, const struct instruction *instruction)
{
    return !form->vex && form->modrm_at < instruction->length &&
           flow_has_modrm(form->opcode[0], form->opcode[1]);
}

static int32_t read_displacement(const uint8_t *at, size_t bytes)
{
    int32_t value = 0;

    if (bytes == 1)
        return (int8_t)*at;
    if (bytes == 4)
        memcpy(&value, at, sizeof(value));
    return value;
}

int64_t form_number(const struct instruction *instruction, size_t bytes)
{
    if (bytes > instruction->length)
        return 0;
    return read_displacement(instruction->code + instruction->length - bytes, bytes);
}

bool instruction_memory(const struct instruction *instruction, struct memory_operand *ret_memory)
{
    const struct form form = form_of(instruction);
    uint8_t mod = form.modrm >> 6, low = form.modrm & 7;
    const uint8_t *at = instruction->code + form.modrm_at + 1;
    struct memory_operand memory = {.index = REGISTER_NONE, .scale = 1};
    size_t bytes = mod == 1 ? 1 : mod == 2 ? 4 : 0;

    if (!form_has_modrm(&form, instruction) || mod == 3)
        return false;
    memory.base = (enum machine_register)(low | (form.rex & REX_B ? 8 : 0));
    if (low == 4) {
        uint8_t sib = *at++, index = ((sib >> 3) & 7) | (form.rex & REX_X ? 8 : 0);

        low = sib & 7;
        memory.base = (enum machine_register)(low | (form.rex & REX_B ? 8 : 0));
        memory.index = index == 4 ? REGISTER_NONE : (enum machine_register)index;
        memory.scale = (uint8_t)(1 << (sib >> 6));
        if (low == 5 && mod == 0)
            memory.base = REGISTER_NONE;
    } else if (low == 5 && mod == 0) {
        memory.base = REGISTER_PC;
    }
    if (low == 5 && mod == 0)
        bytes = 4;
    if (at + bytes > instruction->code + instruction->length)
        return false;
    memory.displacement = read_displacement(at, bytes);
    *ret_memory = memory;
    return true;
}

bool instruction_fixed_memory(const struct instruction *instruction, uint64_t *ret_address)
{
    struct memory_operand memory;

    if (!instruction_memory(instruction, &memory) || memory.base != REGISTER_PC)
        return false;
    *ret_address = instruction->address + instruction->length + (uint64_t)(int64_t)memory.displacement;
    return true;
}

/* mov, push, and arithmetic with an immediate. */
bool instruction_absolute_address(const struct instruction *instruction, uint64_t *ret_address)
{
    const struct form form = form_of(instruction);
    const uint8_t *end = instruction->code + instruction->length;
    uint8_t opcode = form.opcode[0];
    uint64_t wide = 0;
    uint32_t address;

    if (form.vex || instruction->length < 5 ||
        !((opcode >= 0xb8 && opcode <= 0xbf) || opcode == 0x68 || opcode == 0x81 || opcode == 0xc7 ||
          (opcode < 0x40 && (opcode & 7) == 5)))
        return false;
    memcpy(&address, end - sizeof(address), sizeof(address));
    if (instruction->length == 10)
        memcpy(&wide, end - sizeof(wide), sizeof(wide));
    *ret_address = wide ? wide : address;
    return true;
}

/* ---------------------------------------------------------------------------------------------- moves */

static bool is_mov(const struct form *form)
{
    return form_is(form, 0x89) || form_is(form, 0x8b);
}

bool instruction_copies(const struct instruction *instruction, enum machine_register *ret_from,
                        enum machine_register *ret_to)
{
    const struct form form = form_of(instruction);
    enum machine_register reg = form_reg(&form), rm = form_rm(&form);

    if (!is_mov(&form) || rm == REGISTER_NONE)
        return false;
    *ret_from = form.opcode[0] == 0x89 ? reg : rm;
    *ret_to = form.opcode[0] == 0x89 ? rm : reg;
    return true;
}

bool instruction_accesses(const struct instruction *instruction, enum machine_register *ret_register,
                          struct memory_operand *ret_memory)
{
    const struct form form = form_of(instruction);

    *ret_register = form_reg(&form);
    return is_mov(&form) && instruction_memory(instruction, ret_memory);
}

/* One of 32 bits or, if `wide`, of 64. */
static bool moves(const struct instruction *instruction, uint8_t opcode, bool wide,
                  enum machine_register *ret_register, struct memory_operand *ret_memory)
{
    const struct form form = form_of(instruction);

    *ret_register = form_reg(&form);
    return form_is(&form, opcode) && !form.operand_size && !(form.rex & REX_W) == !wide &&
           instruction_memory(instruction, ret_memory);
}

bool instruction_loads(const struct instruction *instruction, bool wide, enum machine_register *ret_register,
                       struct memory_operand *ret_memory)
{
    return moves(instruction, 0x8b, wide, ret_register, ret_memory);
}

bool instruction_stores(const struct instruction *instruction, bool wide, enum machine_register *ret_register,
                        struct memory_operand *ret_memory)
{
    return moves(instruction, 0x89, wide, ret_register, ret_memory);
}

bool instruction_stores_byte(const struct instruction *instruction, enum machine_register *ret_register,
                             struct memory_operand *ret_memory)
{
    const struct form form = form_of(instruction);

    *ret_register = form_reg(&form);
    return form_is(&form, 0x88) && instruction_memory(instruction, ret_memory);
}

bool instruction_stores_number(const struct instruction *instruction, struct memory_operand *ret_memory,
                               int64_t *ret_number)
{
    const struct form form = form_of(instruction);

    if (!form_is(&form, 0xc7) || form_group(&form) != 0 || !(form.rex & REX_W) ||
        !instruction_memory(instruction, ret_memory))
        return false;
    *ret_number = form_number(instruction, 4);
    return true;
}

/* mov $NUMBER, %REG in its three forms, and xor of a register with itself. */
bool instruction_loads_number(const struct instruction *instruction, enum machine_register *ret_register,
                              int64_t *ret_number)
{
    const struct form form = form_of(instruction);
    bool clears = (form_is(&form, 0x31) || form_is(&form, 0x33)) && form_reg(&form) == form_rm(&form);

    if (!form.vex && (form.opcode[0] & 0xf8) == 0xb8) {
        *ret_register = form_opcode_register(&form);
        if (form.rex & REX_W)
            memcpy(ret_number, instruction->code + instruction->length - sizeof(*ret_number),
                   sizeof(*ret_number));
        else
            *ret_number = form_number(instruction, 4);
        return !form.operand_size;
    }
    *ret_register = form_rm(&form);
    *ret_number = clears ? 0 : form_number(instruction, 4);
    return clears || (form_is(&form, 0xc7) && form_group(&form) == 0 && *ret_register != REGISTER_NONE &&
                      !form.operand_size);
}

bool instruction_makes_address(const struct instruction *instruction, enum machine_register *ret_register,
                               struct memory_operand *ret_memory)
{
    const struct form form = form_of(instruction);

    *ret_register = form_reg(&form);
    return form_is(&form, 0x8d) && instruction_memory(instruction, ret_memory);
}

bool instruction_makes_fixed_address(const struct instruction *instruction,
                                     enum machine_register *ret_register, uint64_t *ret_address)
{
    const struct form form = form_of(instruction);

    *ret_register = form_reg(&form);
    return form_is(&form, 0x8d) && instruction_fixed_memory(instruction, ret_address);
}

bool instruction_adds(const struct instruction *instruction, enum machine_register *ret_from,
                      enum machine_register *ret_to)
{
    const struct form form = form_of(instruction);

    *ret_from = form_reg(&form);
    *ret_to = form_rm(&form);
    return form_is(&form, 0x01) && *ret_to != REGISTER_NONE;
}

bool instruction_goes_through(const struct instruction *instruction, enum machine_register *ret_register)
{
    const struct form form = form_of(instruction);

    *ret_register = form_rm(&form);
    return (instruction->kind == INSTRUCTION_JUMP_INDIRECT ||
            instruction->kind == INSTRUCTION_CALL_INDIRECT) &&
           *ret_register != REGISTER_NONE;
}

/* ---------------------------------------------------------------------------------------------- comparisons
 */

enum { GROUP_ADD = 0, GROUP_COMPARE = 7 }; /* of 80, 81 and 83 */

bool instruction_compares_register(const struct instruction *instruction, unsigned size,
                                   enum machine_register *ret_register, int64_t *ret_number)
{
    const struct form form = form_of(instruction);

    *ret_number = form_number(instruction, 1);
    if (size == 1) {
        *ret_register = (enum machine_register)0;
        return form_is(&form, 0x3c);
    }
    *ret_register = form_rm(&form);
    return form_is(&form, 0x83) && form_group(&form) == GROUP_COMPARE && *ret_register != REGISTER_NONE;
}

bool instruction_compares_memory(const struct instruction *instruction, unsigned size,
                                 struct memory_operand *ret_memory, int64_t *ret_number)
{
    const struct form form = form_of(instruction);

    *ret_number = form_number(instruction, 1);
    return form_is(&form, size == 1 ? 0x80 : 0x83) && form_group(&form) == GROUP_COMPARE &&
           !(form.rex & REX_W) && instruction_memory(instruction, ret_memory);
}

bool instruction_compares_with(const struct instruction *instruction, struct memory_operand *ret_memory)
{
    const struct form form = form_of(instruction);

    return form_is(&form, 0x3b) && instruction_memory(instruction, ret_memory);
}

bool instruction_only_compares(const struct instruction *instruction)
{
    const struct form form = form_of(instruction);

    if (form_is(&form, 0x81) || form_is(&form, 0x83))
        return form_group(&form) == GROUP_COMPARE;
    return form_is(&form, 0x39) || form_is(&form, 0x3b) || form_is(&form, 0x85);
}

bool instruction_tests(const struct instruction *instruction)
{
    const struct form form = form_of(instruction);

    return form_is(&form, 0x84) || form_is(&form, 0x85);
}

bool instruction_increments(const struct instruction *instruction, bool wide,
                            struct memory_operand *ret_memory)
{
    const struct form form = form_of(instruction);
    bool counts = form_is(&form, 0xff) || (form_is(&form, 0x83) && form_number(instruction, 1) == 1);

    return counts && form_group(&form) == GROUP_ADD && !instruction->locked && !(form.rex & REX_W) == !wide &&
           instruction_memory(instruction, ret_memory);
}

uint8_t instruction_condition_code(const struct instruction *branch)
{
    const struct form form = form_of(branch);

    return (form.opcode[0] == 0x0f ? form.opcode[1] : form.opcode[0]) & 15;
}

enum branch_condition instruction_condition(const struct instruction *branch)
{
    const struct form form = form_of(branch);

    if (branch->kind != INSTRUCTION_BRANCH || (form.opcode[0] & 0xf0) == 0xe0) /* loop, jrcxz */
        return BRANCH_IF_OTHER;
    switch (instruction_condition_code(branch)) {
    case 4:
        return BRANCH_IF_ZERO;
    case 5:
        return BRANCH_IF_NOT_ZERO;
    case 6:
        return BRANCH_IF_NOT_ABOVE;
    case 7:
        return BRANCH_IF_ABOVE;
    default:
        return BRANCH_IF_OTHER;
    }
}
