/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "image/arch/effects.h"

#include <errno.h>

#include "image/arch/x86_64/form.h"

#define RAX ((enum machine_register)0)
#define RBX ((enum machine_register)3)
#define R12 ((enum machine_register)12)

/* ---------------------------------------------------------------------------------------------- registers */

/* Of arithmetic with two operands, the odd and even opcodes below 40. cmp writes none. */
static int written_by_arithmetic(const struct form *form)
{
    uint8_t opcode = form->opcode[0];

    if (opcode >= 0x38)
        return REGISTER_NONE;
    if (!(opcode & 1))
        return -EILSEQ; /* of bytes: %ah and the like would have to be told apart */
    if ((opcode & 7) >= 4)
        return (int)RAX;
    return opcode & 2 ? (int)form_reg(form) : (int)form_rm(form);
}

static int written_by_others(const struct form *form)
{
    switch (form->opcode[0]) {
    case 0x80:
        return form_group(form) == 7 ? REGISTER_NONE : -EILSEQ;
    case 0x81:
    case 0x83:
        return form_group(form) == 7 ? REGISTER_NONE : (int)form_rm(form);
    case 0x84:
    case 0x85:
    case 0xa8:
    case 0xa9: /* test */
        return REGISTER_NONE;
    case 0x89:
    case 0xc7:
    case 0xc1:
        return (int)form_rm(form);
    case 0x8b:
    case 0x8d:
    case 0x63:
        return (int)form_reg(form);
    case 0xf6:
    case 0xf7:
        return form_group(form) < 2 ? REGISTER_NONE : -EILSEQ;
    default:
        return -EILSEQ;
    }
}

int instruction_written_register(const struct instruction *instruction)
{
    const struct form form = form_of(instruction);
    uint8_t opcode = form.opcode[0], second = form.opcode[1];

    if (instruction->kind == INSTRUCTION_PUSH || instruction->kind == INSTRUCTION_NOP ||
        instruction->kind == INSTRUCTION_ENDBR)
        return REGISTER_NONE;
    if (instruction->kind != INSTRUCTION_OTHER || form.vex || instruction->locked || form.repeat)
        return -EILSEQ;
    if (opcode == 0x0f) /* movzx, movsx, cmov */
        return (second & 0xf6) == 0xb6 || (second & 0xf0) == 0x40 ? (int)form_reg(&form) : -EILSEQ;
    if (opcode < 0x40 && (opcode & 7) < 6)
        return written_by_arithmetic(&form);
    if (opcode >= 0xb8 && opcode <= 0xbf)
        return (int)form_opcode_register(&form);
    return written_by_others(&form);
}

static bool may_write_0f(const struct form *form, enum machine_register reg)
{
    uint8_t second = form->opcode[1];

    if (second == 0x10 || second == 0x11) /* movups */
        return false;
    if (second >= 0x90 && second <= 0x9f) /* setcc */
        return form_rm(form) == reg;
    if (second == 0xb6 || second == 0xb7) /* movzx */
        return form_reg(form) == reg;
    return true;
}

bool instruction_may_write(const struct instruction *instruction, enum machine_register reg)
{
    const struct form form = form_of(instruction);

    if (instruction->kind == INSTRUCTION_NOP || reg >= MACHINE_REGISTERS)
        return false;
    switch (form.opcode[0]) {
    case 0x84: /* test, cmp */
    case 0x85:
    case 0x38 ... 0x3d:
    case 0xa8:
    case 0xa9:
        return false;
    case 0xb8 ... 0xbf: /* mov of a number */
        return form_opcode_register(&form) == reg;
    case 0x01: /* add, or, and, sub, xor to register or memory */
    case 0x09:
    case 0x21:
    case 0x29:
    case 0x31:
    case 0x88: /* mov to register or memory */
    case 0x89:
    case 0xc6:
    case 0xc7:
    case 0xfe: /* inc, dec */
    case 0xff:
        return form_rm(&form) == reg;
    case 0x83: /* cmp is one of the group */
    case 0x81:
        return form_rm(&form) == reg && form_group(&form) != 7;
    case 0x03: /* the same to a register */
    case 0x0b:
    case 0x23:
    case 0x2b:
    case 0x33:
    case 0x8a:
    case 0x8b:
    case 0x8d:
        return form_reg(&form) == reg;
    case 0x0f:
        return may_write_0f(&form, reg);
    default:
        return true;
    }
}

bool instruction_replaces(const struct instruction *instruction, enum machine_register reg)
{
    const struct form form = form_of(instruction);

    if (form_is(&form, 0x8b) || form_is(&form, 0x8d))
        return form_reg(&form) == reg;
    if (form_is(&form, 0x89))
        return form_rm(&form) == reg;
    return !form.vex && (form.opcode[0] & 0xf8) == 0xb8 && form_opcode_register(&form) == reg;
}

bool register_is_kept(enum machine_register reg)
{
    return reg == RBX || reg == REGISTER_FRAME || (reg >= R12 && reg < MACHINE_REGISTERS);
}

unsigned register_in_dwarf(enum machine_register reg)
{
    static const uint8_t numbers[MACHINE_REGISTERS] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};

    return numbers[reg];
}

/* ---------------------------------------------------------------------------------------------- atomics */

bool instruction_compares_and_exchanges(const struct instruction *instruction)
{
    const struct form form = form_of(instruction);

    return instruction->locked && form_is_0f(&form, 0xb1);
}

bool instruction_exchanges_and_adds(const struct instruction *instruction)
{
    const struct form form = form_of(instruction);

    return instruction->locked && form_is_0f(&form, 0xc1);
}

/* cmpxchg writes rax, xadd its register operand. */
bool instruction_exchange_writes(const struct instruction *instruction, enum machine_register reg)
{
    const struct form form = form_of(instruction);

    return instruction_exchanges_and_adds(instruction) ? form_reg(&form) == reg : reg == RAX;
}

bool instruction_is_atomic(const struct instruction *instruction)
{
    const struct form form = form_of(instruction);
    bool exchanges = form_is(&form, 0x86) || form_is(&form, 0x87);

    return instruction->locked || (exchanges && form_rm(&form) == REGISTER_NONE);
}

/* ---------------------------------------------------------------------------------------------- the stack */

bool instruction_pops(const struct instruction *instruction)
{
    const struct form form = form_of(instruction);
    uint8_t opcode = form.opcode[0];

    return !form.vex && ((opcode >= 0x58 && opcode <= 0x5f) || opcode == 0x8f || opcode == 0x9d);
}

bool instruction_exchanges_stack(const struct instruction *instruction)
{
    const struct form form = form_of(instruction);

    if (form_is(&form, 0x94))
        return !(form.rex & REX_B);
    return form_is(&form, 0x87) && (form_reg(&form) == REGISTER_STACK || form_rm(&form) == REGISTER_STACK);
}

bool instruction_leaves_frame(const struct instruction *instruction)
{
    const struct form form = form_of(instruction);

    return form_is(&form, 0xc9);
}

/* ---------------------------------------------------------------------------------------------- others */

bool instruction_is_system_call(const struct instruction *instruction)
{
    const struct form form = form_of(instruction);

    return form_is_0f(&form, 0x05);
}

bool instruction_may_stay(const struct instruction *instruction)
{
    const struct form form = form_of(instruction);
    uint8_t opcode = form.opcode[0];
    bool is_string = (opcode >= 0xa4 && opcode <= 0xa7) || (opcode >= 0xaa && opcode <= 0xaf);

    return !form.vex && ((form.repeat && is_string) || (opcode == 0xc7 && form.modrm == 0xf8)); /* xbegin */
}

static bool computes_0f(uint8_t second)
{
    switch (second) {
    case 0x28:          /* movaps */
    case 0x40 ... 0x4f: /* cmov */
    case 0x57:          /* xorps */
    case 0x6e:          /* movd */
    case 0x6f:          /* movdqa */
    case 0x90 ... 0x9f: /* setcc */
    case 0xaf:          /* imul */
    case 0xb6:          /* movzx */
    case 0xb7:
    case 0xbe: /* movsx */
    case 0xbf:
    case 0xef: /* pxor */
        return true;
    default:
        return false;
    }
}

/* Reads memory of the image itself: mov, cmp and movzx at a fixed distance. */
static bool reads_fixed(const struct form *form)
{
    uint8_t opcode = form->opcode[0], second = form->opcode[1];

    if ((form->modrm & 0xc7) != 5)
        return false;
    if (opcode == 0x0f)
        return second == 0xb6 || second == 0xb7 || second == 0xbe || second == 0xbf;
    return opcode == 0x8b || ((opcode == 0x80 || opcode == 0x81 || opcode == 0x83) && form_group(form) == 7);
}

/* With operands that ModRM names. */
static bool computes_on_operands(const struct form *form)
{
    uint8_t opcode = form->opcode[0], group = form_group(form);

    if (form->modrm < 0xc0)
        return reads_fixed(form);
    switch (opcode) {
    case 0x0f:
        return computes_0f(form->opcode[1]);
    case 0x63: /* movslq */
    case 0x69: /* imul */
    case 0x6b:
    case 0x80 ... 0x81:
    case 0x83 ... 0x8b: /* test, xchg, mov */
    case 0xc0 ... 0xc1: /* shifts */
    case 0xd0 ... 0xd3:
        return true;
    case 0xc6 ... 0xc7:
    case 0xfe ... 0xff: /* inc, dec; the others of its group call, jump and push */
        return group < 2;
    case 0xf6 ... 0xf7: /* test, not, neg, mul, imul; then div */
        return group < 6;
    default:
        return opcode < 0x40 && (opcode & 7) < 4;
    }
}

bool instruction_only_computes(const struct instruction *instruction)
{
    const struct form form = form_of(instruction);
    uint8_t opcode = form.opcode[0];

    if (instruction->kind == INSTRUCTION_PUSH || instruction->kind == INSTRUCTION_NOP ||
        instruction->kind == INSTRUCTION_ENDBR)
        return true;
    if (instruction->kind != INSTRUCTION_OTHER || form.vex || instruction->locked || form.repeat ||
        form.address_size)
        return false;
    return opcode == 0x8d || (opcode >= 0xb0 && opcode <= 0xbf) ||
           computes_on_operands(&form); /* lea; mov of a number */
}
