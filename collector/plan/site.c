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
#include "collector/plan/site.h"

#include <string.h>

#include "base/array.h"

/* What may be skipped at the start of a function: more padding than this is no function. */
#define SKIP_MAX 64

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
static bool is_bad_opcode(const struct instruction *instruction)
{
    uint8_t reg = (instruction->modrm >> 3) & 7;

    switch (instruction->opcode[0]) {
    case 0x90: /* xchg %r8, %rax: some kernels take it for a no-op */
        return instruction->rex & 1;
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
        return instruction->opcode[1] == 0xb2;
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
static bool is_plain_push(const struct instruction *instruction)
{
    return instruction->length == 1 || (instruction->length == 2 && instruction->rex == 0x41);
}

enum site_class site_classify(const struct instruction *instruction, enum site_refusal *ret_refusal)
{
    *ret_refusal = SITE_OK;
    if (instruction->lock || instruction->segment)
        return refuse(ret_refusal, SITE_PREFIX);
    if (instruction->vex || is_bad_opcode(instruction))
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
        return is_plain_push(instruction) ? SITE_EMULATED : SITE_SINGLE_STEPPED;
    case INSTRUCTION_BRANCH:
    case INSTRUCTION_JUMP:
    case INSTRUCTION_CALL:
        if (instruction->operand_size)
            return refuse(ret_refusal, SITE_PREFIX);
        if (instruction->opcode[0] >= 0xe0 && instruction->opcode[0] <= 0xe3)
            return SITE_SINGLE_STEPPED; /* loop, jrcxz */
        return SITE_EMULATED;
    default:
        return SITE_SINGLE_STEPPED;
    }
}

/* ---------------------------------------------------------------------------------------------- loops */

static bool is_in(uint64_t target, uint64_t first, uint64_t last)
{
    return target >= first && target <= last;
}

/* Whether decoding from the start of the function comes upon an instruction at offset `at`. Where it gets
 * lost before, the answer is yes. */
static bool is_boundary(struct disasm *disasm, const uint8_t *code, size_t size, uint64_t address, size_t at)
{
    struct instruction instruction;
    size_t here = 0;

    while (here < at) {
        if (disasm_decode(disasm, code + here, size - here, address + here, &instruction) < 0)
            return true;
        here += instruction.length;
    }
    return here == at;
}

/* Looks for a jmp or jcc with a one-byte displacement: it reaches 128 bytes back. Searching for the bytes
 * first and decoding only what may be one is what makes this cheap. */
static bool has_short_branch_to(struct disasm *disasm, const uint8_t *code, size_t size, uint64_t address,
                                size_t site)
{
    for (size_t i = 0; i + 2 <= size && i <= site + 126; i++) {
        uint8_t opcode = code[i];
        uint64_t target = address + i + 2 + (uint64_t)(int64_t)(int8_t)code[i + 1];

        if (opcode != 0xeb && (opcode & 0xf0) != 0x70 && (opcode & 0xfc) != 0xe0)
            continue;
        if (is_in(target, address, address + site) && is_boundary(disasm, code, size, address, i))
            return true;
    }
    return false;
}

/* The same with a four-byte displacement, which may stand anywhere in the function. */
static bool has_long_branch_to(struct disasm *disasm, const uint8_t *code, size_t size, uint64_t address,
                               size_t site)
{
    for (size_t i = 0; i + 5 <= size; i++) {
        size_t length = code[i] == 0xe9 ? 5 : 6;
        int32_t distance;

        if ((code[i] != 0xe9 && (code[i] != 0x0f || (code[i + 1] & 0xf0) != 0x80)) || i + length > size)
            continue;
        memcpy(&distance, code + i + length - sizeof(distance), sizeof(distance));
        if (is_in(address + i + length + (uint64_t)(int64_t)distance, address, address + site) &&
            is_boundary(disasm, code, size, address, i))
            return true;
    }
    return false;
}

/* ---------------------------------------------------------------------------------------------- choosing */

static bool is_skipped(const struct instruction *instruction)
{
    return instruction->kind == INSTRUCTION_ENDBR ||
           (instruction->kind == INSTRUCTION_NOP && !is_emulated_nop(instruction));
}

/* The first place at or behind the entry that will do. A skipped endbr64 or long no-op is remembered: where
 * nothing behind it will do, a dear probe is better than none. */
static void find_place(struct disasm *disasm, const uint8_t *code, size_t size, uint64_t address,
                       struct site *site)
{
    struct site fallback = {0};
    struct instruction instruction;

    *site = (struct site){.class = SITE_REFUSED, .refusal = size ? SITE_NO_ROOM : SITE_EMPTY};
    for (size_t at = 0; at < size && at < SKIP_MAX; at += instruction.length) {
        enum site_refusal refusal;
        enum site_class class;

        if (disasm_decode(disasm, code + at, size - at, address + at, &instruction) < 0) {
            site->refusal = SITE_UNDECODABLE;
            return;
        }
        class = site_classify(&instruction, &refusal);
        if (!is_skipped(&instruction)) {
            *site = (struct site){at, class, refusal};
            break;
        }
        if (class != SITE_REFUSED && fallback.class == SITE_REFUSED)
            fallback = (struct site){at, class, SITE_OK};
    }
    if (site->class == SITE_REFUSED && fallback.class != SITE_REFUSED)
        *site = fallback;
}

void site_choose(struct disasm *disasm, const uint8_t *code, size_t size, uint64_t address,
                 struct site *ret_site)
{
    struct site site;

    find_place(disasm, code, size, address, &site);
    if (site.class != SITE_REFUSED && (has_short_branch_to(disasm, code, size, address, site.offset) ||
                                       has_long_branch_to(disasm, code, size, address, site.offset)))
        site = (struct site){site.offset, SITE_REFUSED, SITE_LOOP};
    *ret_site = site;
}

/* ---------------------------------------------------------------------------------------------- words */

const char *site_refusal_text(enum site_refusal refusal)
{
    static const char *const texts[SITE_REFUSALS] = {
        [SITE_OK] = "not refused",
        [SITE_EMPTY] = "no code in the file",
        [SITE_UNDECODABLE] = "its first bytes are no instruction",
        [SITE_NO_ROOM] = "nothing but padding",
        [SITE_LOOP] = "a branch leads back to its first instruction",
        [SITE_PREFIX] = "its first instruction has a prefix that probes must not have",
        [SITE_TRAP] = "its first instruction is a trap",
        [SITE_PRIVILEGED] = "its first instruction is a system instruction",
        [SITE_OPCODE] = "its first instruction cannot be probed on every kernel",
        [SITE_IFUNC] = "a resolver of an indirect function",
        [SITE_FRAGMENT] = "a part of another function",
        [SITE_INSIDE] = "it begins inside another function",
        [SITE_NO_SIZE] = "its symbol has no size: it may be a label",
        [SITE_START_UP] = "the compiler's start-up code",
    };

    return refusal < SITE_REFUSALS && texts[refusal] ? texts[refusal] : "unknown";
}

const char *site_class_text(enum site_class class)
{
    static const char *const texts[SITE_CLASSES] = {
        [SITE_REFUSED] = "refused",
        [SITE_EMULATED] = "emulated",
        [SITE_SINGLE_STEPPED] = "single-stepped",
    };

    return class < SITE_CLASSES ? texts[class] : "unknown";
}
