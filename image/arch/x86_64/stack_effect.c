/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "image/arch/stack_effect.h"

#include "image/arch/operands.h"
#include "image/arch/x86_64/form.h"

static enum stack_effect moved(int64_t *ret_bytes, int64_t bytes)
{
    *ret_bytes = bytes;
    return bytes ? STACK_MOVED : STACK_KEPT;
}

/* Opcodes of one byte whose ModRM.reg is written to; of the first 64 these are the odd quarters. */
static bool writes_reg(uint8_t opcode)
{
    if (opcode < 0x38)
        return (opcode & 6) == 2;
    switch (opcode) {
    case 0x63: /* movslq */
    case 0x69: /* imul */
    case 0x6b:
    case 0x86: /* xchg */
    case 0x87:
    case 0x8a: /* mov */
    case 0x8b:
    case 0x8d: /* lea */
        return true;
    default:
        return false;
    }
}

/* The same for ModRM.rm. Some of the groups only read it; that they count as writers of rsp harms nobody. */
static bool writes_rm(const struct form *form)
{
    uint8_t opcode = form->opcode[0], group = form_group(form);

    if (opcode < 0x38)
        return (opcode & 6) == 0;
    switch (opcode) {
    case 0x80: /* arithmetic with an immediate, the last of which is cmp */
    case 0x81:
    case 0x83:
        return group != 7;
    case 0xf6: /* test, not, neg, mul... */
    case 0xf7:
        return group == 2 || group == 3;
    case 0xff: /* inc, dec; calls, jumps, push */
        return group < 2;
    case 0x86:
    case 0x87:
    case 0x88:
    case 0x89:
    case 0x8c:
    case 0x8f:
    case 0xc0:
    case 0xc1:
    case 0xc6:
    case 0xc7:
    case 0xd0 ... 0xd3:
    case 0xfe:
        return true;
    default:
        return false;
    }
}

/* Those behind 0F that write to a general register: it is in ModRM.reg, rarely in ModRM.rm. */
static bool writes_reg_0f(uint8_t second)
{
    switch (second) {
    case 0x02: /* lar, lsl */
    case 0x03:
    case 0x2c: /* conversions to integers */
    case 0x2d:
    case 0x40 ... 0x4f: /* cmov */
    case 0x50:          /* movmskps */
    case 0xaf:          /* imul */
    case 0xb2:          /* lss, lfs, lgs */
    case 0xb4:
    case 0xb5:
    case 0xb6: /* movzx, popcnt, bsf, bsr, movsx */
    case 0xb7:
    case 0xb8:
    case 0xbc ... 0xbf:
    case 0xc0: /* xadd */
    case 0xc1:
    case 0xc5: /* pextrw */
    case 0xd7: /* pmovmskb */
        return true;
    default:
        return false;
    }
}

static bool writes_rm_0f(uint8_t second)
{
    switch (second) {
    case 0x00:          /* sldt, str */
    case 0x01:          /* smsw */
    case 0x7e:          /* movd */
    case 0x90 ... 0x9f: /* setcc */
    case 0xa4:          /* shld, shrd */
    case 0xa5:
    case 0xac:
    case 0xad:
    case 0xab: /* bts, btr, btc */
    case 0xb3:
    case 0xba:
    case 0xbb:
    case 0xb0: /* cmpxchg, xadd */
    case 0xb1:
    case 0xc0:
    case 0xc1:
    case 0xc7: /* rdrand */
        return true;
    default:
        return false;
    }
}

/* add and sub of an immediate, and lea of a sum with rsp, are what compilers move rsp with. */
static enum stack_effect effect_of_sum(const struct instruction *instruction, int64_t *ret_bytes)
{
    const struct form form = form_of(instruction);
    uint8_t opcode = form.opcode[0], group = form_group(&form);
    struct memory_operand memory;

    if (!(form.rex & REX_W) || form.operand_size)
        return STACK_LOST;
    if (opcode == 0x8d && instruction_memory(instruction, &memory) && memory.base == REGISTER_STACK &&
        memory.index == REGISTER_NONE)
        return moved(ret_bytes, memory.displacement);
    if ((opcode == 0x81 || opcode == 0x83) && (group == 0 || group == 5)) {
        int64_t bytes = form_number(instruction, opcode == 0x81 ? 4 : 1);

        return moved(ret_bytes, group == 0 ? bytes : -bytes);
    }
    return STACK_LOST;
}

static enum stack_effect effect_of_modrm(const struct instruction *instruction, int64_t *ret_bytes)
{
    const struct form form = form_of(instruction);
    uint8_t first = form.opcode[0], second = form.opcode[1];
    bool reg, rm;

    if (!form_has_modrm(&form, instruction))
        return STACK_KEPT;
    reg = first == 0x0f ? writes_reg_0f(second) : writes_reg(first);
    rm = first == 0x0f ? writes_rm_0f(second) : writes_rm(&form);
    if ((reg && form_reg(&form) == REGISTER_STACK) || (rm && form_rm(&form) == REGISTER_STACK))
        return effect_of_sum(instruction, ret_bytes);
    return STACK_KEPT;
}

/* push and pop; prefix 66 makes them move by two bytes, which nobody wants to follow. */
static enum stack_effect effect_of_push(const struct form *form, int64_t bytes, int64_t *ret_bytes)
{
    return form->operand_size ? STACK_LOST : moved(ret_bytes, bytes);
}

static enum stack_effect effect_of_two_bytes(const struct instruction *instruction, int64_t *ret_bytes)
{
    const struct form form = form_of(instruction);
    uint8_t third = form.modrm; /* behind 0F 38 and 0F 3A */

    switch (form.opcode[1]) {
    case 0xa0: /* push %fs, %gs */
    case 0xa8:
        return effect_of_push(&form, -8, ret_bytes);
    case 0xa1: /* pop */
    case 0xa9:
        return effect_of_push(&form, 8, ret_bytes);
    case 0xcc: /* bswap %esp */
        return form.rex & REX_B ? STACK_KEPT : STACK_LOST;
    case 0x38: /* movbe, crc32, adcx and others of a map of their own */
        return third >= 0xf0 ? STACK_LOST : STACK_KEPT;
    case 0x3a: /* pextrb, pextrd, extractps */
        return third >= 0x14 && third <= 0x17 ? STACK_LOST : STACK_KEPT;
    default:
        return effect_of_modrm(instruction, ret_bytes);
    }
}

enum stack_effect instruction_stack_effect(const struct instruction *instruction, int64_t *ret_bytes)
{
    const struct form form = form_of(instruction);
    uint8_t group = form_group(&form);

    *ret_bytes = 0;
    if (form.vex)
        return STACK_KEPT;
    switch (form.opcode[0]) {
    case 0x0f:
        return effect_of_two_bytes(instruction, ret_bytes);
    case 0x50 ... 0x57:
    case 0x68: /* push of an immediate */
    case 0x6a:
    case 0x9c: /* pushf */
        return effect_of_push(&form, -8, ret_bytes);
    case 0x5c: /* pop %rsp or %r12 */
        return form.rex & REX_B ? effect_of_push(&form, 8, ret_bytes) : STACK_LOST;
    case 0x58 ... 0x5b:
    case 0x5d ... 0x5f:
    case 0x9d: /* popf */
        return effect_of_push(&form, 8, ret_bytes);
    case 0x8f:
        return form_rm(&form) == REGISTER_STACK ? STACK_LOST : effect_of_push(&form, 8, ret_bytes);
    case 0xff:
        return group == 6 ? effect_of_push(&form, -8, ret_bytes) : effect_of_modrm(instruction, ret_bytes);
    case 0x94: /* xchg with %rsp or %r12 */
    case 0xb4: /* mov of an immediate to %ah or %spl, %rsp */
    case 0xbc:
        return form.rex & REX_B ? STACK_KEPT : STACK_LOST;
    case 0xc8: /* enter, leave */
    case 0xc9:
    case 0xc2: /* returns */
    case 0xc3:
    case 0xca:
    case 0xcb:
    case 0xcd: /* int, iret */
    case 0xcf:
        return STACK_LOST;
    default:
        return effect_of_modrm(instruction, ret_bytes);
    }
}
