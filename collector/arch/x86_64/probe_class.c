/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the kernel makes of an instruction under a uprobe, from arch/x86/kernel/uprobes.c and from
 * measurements:
 *
 * - it carries out itself push r64, jcc, jmp and call with a displacement, and the no-ops of its own table;
 * - it steps over a copy of anything else, which costs twenty times as much;
 * - it refuses some forms. Whoever attaches before the program starts is not told: the probe just never
 * fires. And one refused site fails all sites of its link in a running process. So none must ever be offered.
 *
 * Where kernels differ or are known to be wrong, the form is refused here:
 *
 * - VEX and EVEX: the kernel looks the opcode byte up as if it were a one-byte opcode. 0x74 (vpcmpeqb) is
 * taken for `je` and skipped, 0xe8 (vpsubsb) for `call`: the traced program would compute something else.
 * - five-byte no-ops: recent kernels replace them, once hit, by a call into a mapping that fork children
 * lack. Those longer than eight bytes are stepped or refused, and some kernels optimise the ten-byte one
 * instead.
 * - pushf and popf, which see or lose the trap flag of the step.
 */
#include "collector/arch/probe_class.h"

#include <string.h>

#include "base/array.h"
#include "image/arch/x86_64/form.h"

/* The no-ops that the kernel itself uses, which it therefore knows and emulates; the five-byte one is left
 * out. */
static bool is_emulated_nop(const struct instruction *instruction)
{
    static const struct {
        uint8_t length;
        uint8_t code[8];
    } nops[] = {
        {1, {0x90}},
        {2, {0x66, 0x90}},
        {3, {0x0f, 0x1f, 0x00}},
        {4, {0x0f, 0x1f, 0x40, 0x00}},
        {6, {0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00}},
        {7, {0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00}},
        {8, {0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00}},
    };

    for (size_t i = 0; i < ARRAY_SIZE(nops); i++)
        if (nops[i].length == instruction->length &&
            memcmp(nops[i].code, instruction->code, nops[i].length) == 0)
            return true;
    return false;
}

/* Opcodes that are refused one by one: by the kernel, or for what the file's head says. */
static bool is_bad_opcode(const struct form *form)
{
    uint8_t reg = form_group(form);

    switch (form->opcode[0]) {
    case 0x90: /* xchg %r8, %rax: some kernels take it for a no-op */
        return form->rex & REX_B;
    case 0x8e: /* mov to %ss holds the trap of the step back */
        return reg == 2;
    case 0x9c: /* pushf */
    case 0x9d: /* popf */
    case 0x9a:
    case 0xea: /* far call and jump, and others that are invalid in 64-bit code */
    case 0x06:
    case 0x07:
    case 0x0e:
    case 0x16:
    case 0x17:
    case 0x1e:
    case 0x1f:
    case 0x27:
    case 0x2f:
    case 0x37:
    case 0x3f:
    case 0x60:
    case 0x61:
    case 0x82:
    case 0xce:
    case 0xd4:
    case 0xd5:
    case 0xd6:
        return true;
    case 0xc6:
    case 0xc7: /* xabort, xbegin: a step aborts the transaction */
        return reg != 0;
    case 0xff: /* far calls and jumps */
        return reg == 3 || reg == 5 || reg == 7;
    case 0x0f: /* lss, like mov to %ss */
        return form->opcode[1] == 0xb2;
    default:
        return false;
    }
}

static enum site_class refuse(enum site_refusal *ret_refusal, enum site_refusal refusal)
{
    *ret_refusal = refusal;
    return SITE_REFUSED;
}

/* The kernel emulates push r64 with no prefix but 41 (r8 to r15); with others it steps. */
static bool is_plain_push(const struct instruction *instruction, const struct form *form)
{
    return instruction->length == 1 || (instruction->length == 2 && form->rex == (0x40 | REX_B));
}

enum site_class site_classify(const struct instruction *instruction, enum site_refusal *ret_refusal)
{
    const struct form form = form_of(instruction);

    *ret_refusal = SITE_OK;
    if (instruction->locked || form.segment)
        return refuse(ret_refusal, SITE_PREFIX);
    if (form.vex || is_bad_opcode(&form))
        return refuse(ret_refusal, SITE_OPCODE);
    switch (instruction->kind) {
    case INSTRUCTION_TRAP:
        return refuse(ret_refusal, SITE_TRAP);
    case INSTRUCTION_PRIVILEGED:
        return refuse(ret_refusal, SITE_PRIVILEGED);
    case INSTRUCTION_NOP:
        if (instruction->length == 5)
            return refuse(ret_refusal, SITE_OPCODE);
        return is_emulated_nop(instruction) ? SITE_EMULATED : SITE_SINGLE_STEPPED;
    case INSTRUCTION_PUSH:
        return is_plain_push(instruction, &form) ? SITE_EMULATED : SITE_SINGLE_STEPPED;
    case INSTRUCTION_BRANCH:
    case INSTRUCTION_JUMP:
    case INSTRUCTION_CALL:
        if (form.operand_size)
            return refuse(ret_refusal, SITE_PREFIX);
        if (form.opcode[0] >= 0xe0 && form.opcode[0] <= 0xe3)
            return SITE_SINGLE_STEPPED; /* loop, jrcxz */
        return SITE_EMULATED;
    default:
        return SITE_SINGLE_STEPPED;
    }
}
