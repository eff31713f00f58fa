/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/arch/liveness.h"

#include "image/arch/x86_64/form.h"

#define INSTRUCTIONS_MAX 24

enum { RAX = 0, RSP = 4, RBP = 5 };

enum flags_effect { FLAGS_KEPT, FLAGS_OVERWRITTEN };

/* What an instruction does to general registers, a bit each. What it writes in part it also reads. */
struct effect {
    uint16_t reads, writes;
    enum flags_effect flags;
};

/* How wide an operand is that is a register. */
enum width { WIDTH_BYTE, WIDTH_WORD, WIDTH_FULL }; /* full: 32 bits, which clear the others, or 64 */

/* An instruction with its operands told apart. */
struct operands {
    const struct form *form;
    enum width width;
    uint8_t reg;     /* the field of ModRM that is not r/m, without REX.R */
    bool is_memory;  /* r/m is */
    uint16_t memory; /* the registers of its address */
};

static uint16_t bit(unsigned number)
{
    return (uint16_t)(1u << number);
}

/* Without REX, byte registers 4 to 7 are ah, ch, dh and bh. */
static uint16_t register_bit(const struct operands *operands, unsigned number, unsigned extension,
                             enum width width)
{
    uint8_t rex = operands->form->rex;

    if (width == WIDTH_BYTE && !rex && number >= 4)
        return bit(number - 4);
    return bit(number + (rex & extension ? 8 : 0));
}

static uint16_t reg_bit(const struct operands *operands, enum width width)
{
    return register_bit(operands, operands->reg, REX_R, width);
}

static uint16_t rm_bit(const struct operands *operands, enum width width)
{
    return register_bit(operands, operands->form->modrm & 7, REX_B, width);
}

/* The registers of an address: base, and index of a SIB byte. */
static uint16_t address_bits(const struct instruction *instruction, const struct form *form)
{
    uint8_t mod = form->modrm >> 6, rm = form->modrm & 7, sib, base, index;
    uint16_t bits = 0;

    if (rm != RSP)
        return mod == 0 && rm == RBP ? 0 : bit(rm + (form->rex & REX_B ? 8u : 0u));
    if (form->modrm_at + 1 >= instruction->length) /* there was no ModRM */
        return 0;
    sib = instruction->code[form->modrm_at + 1];
    base = sib & 7;
    index = ((sib >> 3) & 7) + (form->rex & REX_X ? 8 : 0);
    if (!(mod == 0 && base == RBP))
        bits |= bit(base + (form->rex & REX_B ? 8u : 0u));
    if (index != RSP)
        bits |= bit(index);
    return bits;
}

static struct operands operands_of(const struct instruction *instruction, const struct form *form,
                                   bool of_bytes)
{
    struct operands operands = {.form = form, .reg = form_group(form)};

    operands.width = of_bytes                                     ? WIDTH_BYTE
                     : form->operand_size && !(form->rex & REX_W) ? WIDTH_WORD
                                                                  : WIDTH_FULL;
    operands.is_memory = form->modrm < 0xc0;
    if (operands.is_memory)
        operands.memory = address_bits(instruction, form);
    return operands;
}

/* ---------------------------------------------------------------------------------------------- effects */

static void write_register(struct effect *effect, uint16_t bits, enum width width)
{
    effect->writes |= bits;
    if (width != WIDTH_FULL)
        effect->reads |= bits;
}

static void read_rm(struct effect *effect, const struct operands *operands, enum width width)
{
    effect->reads |= operands->is_memory ? operands->memory : rm_bit(operands, width);
}

static void write_rm(struct effect *effect, const struct operands *operands)
{
    if (operands->is_memory)
        effect->reads |= operands->memory;
    else
        write_register(effect, rm_bit(operands, operands->width), operands->width);
}

enum { ADD, OR, ADC, SBB, AND, SUB, XOR, CMP };

/* add, or, and, sub, xor, cmp. False: adc and sbb, which read the carry. */
static bool arithmetic(struct effect *effect, const struct operands *operands, uint8_t operation,
                       uint8_t form)
{
    uint16_t reg = form < 4 ? reg_bit(operands, operands->width) : bit(RAX);

    if (operation == ADC || operation == SBB)
        return false;
    effect->flags = FLAGS_OVERWRITTEN;
    if ((operation == XOR || operation == SUB) && form < 4 && !operands->is_memory &&
        operands->width == WIDTH_FULL && reg == rm_bit(operands, operands->width)) {
        effect->writes |= reg; /* nothing is left of what it was */
        return true;
    }
    effect->reads |= reg;
    if (form < 4)
        read_rm(effect, operands, operands->width);
    if (operation != CMP && form < 2)
        write_rm(effect, operands);
    else if (operation != CMP)
        write_register(effect, reg, operands->width);
    return true;
}

/* 80, 81, 83: the same with an immediate. */
static bool arithmetic_immediate(struct effect *effect, const struct operands *operands)
{
    if (operands->reg == ADC || operands->reg == SBB)
        return false;
    effect->flags = FLAGS_OVERWRITTEN;
    read_rm(effect, operands, operands->width);
    if (operands->reg != CMP)
        write_rm(effect, operands);
    return true;
}

/* F6, F7: test and neg; not leaves the flags alone. */
static bool group3(struct effect *effect, const struct operands *operands)
{
    if (operands->reg > 3)
        return false;
    read_rm(effect, operands, operands->width);
    if (operands->reg >= 2)
        write_rm(effect, operands);
    if (operands->reg != 2)
        effect->flags = FLAGS_OVERWRITTEN;
    return true;
}

static bool store(struct effect *effect, const struct operands *operands)
{
    effect->reads |= reg_bit(operands, operands->width);
    write_rm(effect, operands);
    return true;
}

/* From r/m of `width` into a whole register, with zeros or signs in front. */
static bool load(struct effect *effect, const struct operands *operands, enum width width)
{
    enum width to = width == WIDTH_BYTE && operands->form->opcode[0] != 0x0f ? WIDTH_BYTE : operands->width;

    read_rm(effect, operands, width);
    write_register(effect, reg_bit(operands, to), to);
    return true;
}

/* Between memory and vector registers, and among these. */
static bool vector(struct effect *effect, const struct operands *operands)
{
    effect->reads |= operands->memory;
    return true;
}

static bool two_bytes(struct effect *effect, const struct instruction *instruction, const struct form *form)
{
    const struct operands operands = operands_of(instruction, form, false);

    switch (form->opcode[1]) {
    case 0x10: /* movups, movss, movupd, movsd */
    case 0x11:
    case 0x28: /* movaps, movapd */
    case 0x29:
    case 0x6f: /* movdqa, movdqu */
    case 0x7f:
        return vector(effect, &operands);
    case 0x57: /* xorps, xorpd */
    case 0xef: /* pxor */
        return !form->repeat && vector(effect, &operands);
    case 0xb6: /* movzx */
    case 0xbe: /* movsx */
        return !form->repeat && load(effect, &operands, WIDTH_BYTE);
    case 0xb7:
    case 0xbf:
        return !form->repeat && load(effect, &operands, WIDTH_WORD);
    default:
        return false;
    }
}

static bool one_byte(struct effect *effect, const struct instruction *instruction, const struct form *form)
{
    const struct operands wide = operands_of(instruction, form, false),
                          bytes = operands_of(instruction, form, true);
    uint8_t opcode = form->opcode[0];

    switch (opcode) {
    case 0x00 ... 0x3f:
        return (opcode & 7) < 6 && arithmetic(effect, opcode & 1 ? &wide : &bytes, opcode >> 3, opcode & 7);
    case 0x50 ... 0x57: /* push */
        effect->reads |= bit((opcode & 7) + (form->rex & REX_B ? 8u : 0u)) | bit(RSP);
        return true;
    case 0x63: /* movsxd */
        return load(effect, &wide, WIDTH_FULL);
    case 0x80:
        return arithmetic_immediate(effect, &bytes);
    case 0x81:
    case 0x83:
        return arithmetic_immediate(effect, &wide);
    case 0x84: /* test: as cmp */
        return arithmetic(effect, &bytes, CMP, 0);
    case 0x85:
        return arithmetic(effect, &wide, CMP, 1);
    case 0x88:
        return store(effect, &bytes);
    case 0x89:
        return store(effect, &wide);
    case 0x8a:
        return load(effect, &bytes, WIDTH_BYTE);
    case 0x8b:
        return load(effect, &wide, WIDTH_FULL);
    case 0x8d: /* lea */
        effect->reads |= wide.memory;
        write_register(effect, reg_bit(&wide, wide.width), wide.width);
        return wide.is_memory;
    case 0xa8: /* test %al, %eax */
        return arithmetic(effect, &bytes, CMP, 4);
    case 0xa9:
        return arithmetic(effect, &wide, CMP, 5);
    case 0xb8 ... 0xbf: /* mov of an immediate */
        write_register(effect, bit((opcode & 7) + (form->rex & REX_B ? 8u : 0u)), wide.width);
        return true;
    case 0xc6:
        write_rm(effect, &bytes);
        return bytes.reg == 0;
    case 0xc7:
        write_rm(effect, &wide);
        return wide.reg == 0;
    case 0xf6:
        return group3(effect, &bytes);
    case 0xf7:
        return group3(effect, &wide);
    default:
        return false;
    }
}

/* False: what it does is not known here, or it leads away. */
static bool effect_of(const struct instruction *instruction, struct effect *ret_effect)
{
    const struct form form = form_of(instruction);

    *ret_effect = (struct effect){0};
    if (instruction->kind == INSTRUCTION_NOP || instruction->kind == INSTRUCTION_ENDBR)
        return true;
    if ((instruction->kind != INSTRUCTION_OTHER && instruction->kind != INSTRUCTION_PUSH) || form.vex ||
        instruction->locked || form.address_size)
        return false;
    if (form.opcode[0] == 0x0f)
        return two_bytes(ret_effect, instruction, &form);
    return !form.repeat && one_byte(ret_effect, instruction, &form);
}

/* ---------------------------------------------------------------------------------------------- following */

struct liveness liveness_look(struct disasm *disasm, const uint8_t *code, size_t size)
{
    struct liveness liveness = {0};
    struct instruction instruction;
    uint16_t read = 0;
    struct effect effect;

    for (size_t at = 0, i = 0; at < size && i < INSTRUCTIONS_MAX; at += instruction.length, i++) {
        if (!disasm_agree(disasm, code + at, size - at, at, &instruction) ||
            !effect_of(&instruction, &effect))
            break;
        read |= (uint16_t)(effect.reads & ~liveness.dead);
        liveness.dead |= (uint16_t)(effect.writes & ~read & LIVENESS_SCRATCH);
        if (effect.flags == FLAGS_OVERWRITTEN)
            liveness.flags_dead = true;
    }
    return liveness;
}
