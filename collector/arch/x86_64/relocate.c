/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/arch/relocate.h"

#include "image/arch/operands.h"
#include "image/arch/x86_64/flow_length.h"
#include "image/arch/x86_64/form.h"

#define MODRM_RIP 0x05 /* mod 0, r/m 5: a displacement from RIP */
#define MODRM_RIP_MASK 0xc7
#define LOOPNE 0xe0 /* E0 to E3: loopne, loope, loop, jrcxz */
#define JRCXZ 0xe3

/* ---------------------------------------------------------------------------------------------- operands */

static size_t count_prefixes(const struct instruction *instruction)
{
    static const uint8_t prefixes[] = {0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x66, 0x67, 0xf0, 0xf2, 0xf3};
    size_t at = 0;

    while (at < instruction->length && memchr(prefixes, instruction->code[at], sizeof(prefixes)))
        at++;
    return at;
}

/* Where the ModRM byte is; `length` if there is none. Of the VEX family only vzeroupper and vzeroall have
 * none: their last byte is the opcode, so they end where it would be. */
static size_t modrm_at(const struct instruction *instruction)
{
    const struct form form = form_of(instruction);
    size_t prefixes = count_prefixes(instruction);

    if (form.vex)
        switch (instruction->code[prefixes]) {
        case 0xc5: /* VEX of two bytes */
            return prefixes + 3;
        case 0x62: /* EVEX */
            return prefixes + 5;
        default: /* VEX and XOP of three bytes */
            return prefixes + 4;
        }
    if (form.opcode[0] == 0x0f && (form.opcode[1] == 0x38 || form.opcode[1] == 0x3a))
        return form.modrm_at + 1U;
    return flow_has_modrm(form.opcode[0], form.opcode[1]) ? form.modrm_at : instruction->length;
}

/* Where the displacement from RIP is, if the instruction has such an operand; otherwise 0. */
static size_t rip_displacement_at(const struct instruction *instruction)
{
    size_t at = modrm_at(instruction);

    if (at + 1 + sizeof(int32_t) > instruction->length ||
        (instruction->code[at] & MODRM_RIP_MASK) != MODRM_RIP)
        return 0;
    return at + 1;
}

/* Whether the operand of an indirect call is reached by rsp, which the push moves. */
static bool goes_by_stack_pointer(const struct instruction *instruction)
{
    size_t at = modrm_at(instruction);
    uint8_t modrm = instruction->code[at];

    if (modrm >= 0xc0) /* call *%rsp; with REX.B %r12, which is let go with it */
        return (modrm & 7) == 4;
    return (modrm & 7) == 4 && (instruction->code[at + 1] & 7) == 4;
}

/* ---------------------------------------------------------------------------------------------- which ones
 */

/* Opcodes that belong to none of the other kinds and cannot move: far transfers, xbegin and xabort. */
static bool is_special(const struct instruction *instruction)
{
    const struct form form = form_of(instruction);
    uint8_t reg = form_group(&form);

    switch (form.opcode[0]) {
    case 0xc6:
    case 0xc7: /* xabort, xbegin: the latter branches */
        return reg == 7 && form.modrm >= 0xc0;
    case 0xff: /* far call and jump */
        return reg == 3 || reg == 5;
    default:
        return false;
    }
}

bool relocate_can(const struct instruction *instruction)
{
    const struct form form = form_of(instruction);

    /* With prefix 67 an address has 32 bits: what is relative to RIP would have to lie there. */
    if (rip_displacement_at(instruction) && form.address_size)
        return false;
    switch (instruction->kind) {
    case INSTRUCTION_TRAP:
    case INSTRUCTION_PRIVILEGED:
        return false;
    case INSTRUCTION_BRANCH:
    case INSTRUCTION_JUMP:
    case INSTRUCTION_CALL:
    case INSTRUCTION_RETURN: /* with prefix 66 Intel's and AMD's processors differ */
        return !form.operand_size;
    case INSTRUCTION_CALL_INDIRECT:
        return !form.operand_size && !is_special(instruction) && !goes_by_stack_pointer(instruction);
    case INSTRUCTION_JUMP_INDIRECT:
        return !form.operand_size && !is_special(instruction);
    case INSTRUCTION_OTHER:
        return form.vex || !is_special(instruction);
    default:
        return true;
    }
}

/* ---------------------------------------------------------------------------------------------- each form */

/* A copy, with the displacement from RIP written anew if it has one. */
static void copy(struct machine_code *code, const struct instruction *instruction)
{
    size_t at = rip_displacement_at(instruction), behind;
    int32_t displacement;

    if (at == 0) {
        machine_code_bytes(code, instruction->code, instruction->length);
        return;
    }
    behind = instruction->length - at - sizeof(displacement);
    memcpy(&displacement, instruction->code + at, sizeof(displacement));
    machine_code_bytes(code, instruction->code, at);
    machine_code_distance(code, instruction->address + instruction->length + (uint64_t)(int64_t)displacement,
                          behind);
    machine_code_bytes(code, instruction->code + at + sizeof(displacement), behind);
}

static void jump(struct machine_code *code, uint64_t target)
{
    EMIT(code, 0xe9);
    machine_code_distance(code, target, 0);
}

/* jcc rel32; the condition is the low half of the opcode in both forms. */
static void branch(struct machine_code *code, const struct instruction *instruction)
{
    EMIT(code, 0x0f, 0x80 | instruction_condition_code(instruction));
    machine_code_distance(code, instruction->target, 0);
}

/*     loop taken;  jmp next;  taken: jmp target;  next:         (loop as the original has it, prefix and all)
 */
static void loop(struct machine_code *code, const struct instruction *instruction)
{
    machine_code_bytes(code, instruction->code, instruction->length - 1U);
    EMIT(code, 2, 0xeb, 5);
    jump(code, instruction->target);
}

/*     call 1f;  int3;  1: lea 8(%rsp), %rsp;  push DISTANCE(%rip)
 *
 * Pushes the address behind the original call, which will lie `distance` bytes behind. The call before gives
 * the processor's return predictor the entry that the callee's return takes off again: that one is predicted
 * wrongly, those of all callers further out are not. (A call of the next instruction would be no call to it.)
 */
static void push_behind(struct machine_code *code, uint32_t distance)
{
    EMIT(code, 0xe8, 1, 0, 0, 0, 0xcc);
    EMIT(code, 0x48, 0x8d, 0x64, 0x24, 8);
    EMIT(code, 0xff, 0x35);
    machine_code_u32(code, distance);
}

static void put_return_address(struct machine_code *code, const struct instruction *instruction)
{
    uint64_t address = instruction->address + instruction->length;

    machine_code_bytes(code, &address, sizeof(address));
}

static void call(struct machine_code *code, const struct instruction *instruction)
{
    push_behind(code, 5);
    jump(code, instruction->target);
    put_return_address(code, instruction);
}

/* FF /2 becomes FF /4, with the same operand. */
static void call_indirect(struct machine_code *code, const struct instruction *instruction)
{
    uint8_t bytes[INSTRUCTION_BYTES] = {0};
    struct instruction jump = *instruction;
    size_t at = modrm_at(instruction);

    memcpy(bytes, instruction->code, instruction->length);
    bytes[at] = (uint8_t)((bytes[at] & ~0x38) | 4 << 3);
    jump.code = bytes;
    push_behind(code, instruction->length);
    copy(code, &jump);
    put_return_address(code, instruction);
}

void relocate(struct machine_code *code, const struct instruction *instruction)
{
    const struct form form = form_of(instruction);

    switch (instruction->kind) {
    case INSTRUCTION_BRANCH:
        if (form.opcode[0] >= LOOPNE && form.opcode[0] <= JRCXZ)
            loop(code, instruction);
        else
            branch(code, instruction);
        break;
    case INSTRUCTION_JUMP:
        jump(code, instruction->target);
        break;
    case INSTRUCTION_CALL:
        call(code, instruction);
        break;
    case INSTRUCTION_CALL_INDIRECT:
        call_indirect(code, instruction);
        break;
    default:
        copy(code, instruction);
        break;
    }
}
