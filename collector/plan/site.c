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
#include "collector/plan/stack_check.h"
#include "image/arch/operands.h"

/* How far a site may lie behind the entry, or behind a check for room on the stack. */
#define STRETCH_BYTES 160
#define STRETCH_INSTRUCTIONS 32

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

/* ---------------------------------------------------------------------------------------------- searching */

struct search {
    struct disasm *disasm;
    const struct flow_map *map;
    const uint8_t *code;
    size_t size;
    uint64_t address;
    size_t at, first; /* offsets: here, and where this stretch began */
    int64_t sp_offset;
    bool loops; /* behind what has been seen so far a branch leads back to the entry */
    struct sites sites;
    enum site_refusal refusal; /* the first one, SITE_OK if there is none */
};

/* What may keep the thread, or leave another way than to the next instruction. */
static bool is_last(const struct instruction *instruction)
{
    uint8_t opcode = instruction->opcode[0];
    bool is_string = (opcode >= 0xa4 && opcode <= 0xa7) || (opcode >= 0xaa && opcode <= 0xaf);

    if (instruction->repeat && is_string && !instruction->vex)
        return true;
    switch (instruction->kind) {
    case INSTRUCTION_OTHER:
    case INSTRUCTION_ENDBR:
    case INSTRUCTION_NOP:
    case INSTRUCTION_PUSH:
        return !instruction->vex && opcode == 0xc7 && instruction->modrm == 0xf8; /* xbegin */
    default:
        return true;
    }
}

static bool is_better(const struct site *site, const struct site *best)
{
    return best->class == SITE_REFUSED ||
           (best->class == SITE_SINGLE_STEPPED && site->class == SITE_EMULATED);
}

/* The walk goes by tables of lengths; where a probe may go, Capstone has to agree. */
static bool is_sound(const struct search *search, const struct instruction *instruction)
{
    struct instruction second;

    return disasm_decode(search->disasm, instruction->code, search->size - search->at, instruction->address,
                         &second) == 0 &&
           second.length == instruction->length;
}

static void consider(struct search *search, const struct instruction *instruction)
{
    struct site site = {.offset = search->at, .sp_offset = (uint32_t)search->sp_offset};
    bool is_any, is_unmoved;

    site.class = site_classify(instruction, &site.refusal);
    if (flow_map_has_any(search->map, instruction->address, instruction->length, FLOW_CHANGES))
        site = (struct site){.class = SITE_REFUSED, .refusal = SITE_CHANGES};
    if (site.class == SITE_REFUSED) {
        if (search->refusal == SITE_OK &&
            (instruction->kind != INSTRUCTION_NOP || site.refusal == SITE_CHANGES))
            search->refusal = site.refusal;
        return;
    }
    is_any = is_better(&site, &search->sites.any);
    is_unmoved = site.sp_offset == 0 && is_better(&site, &search->sites.unmoved);
    if ((!is_any && !is_unmoved) || !is_sound(search, instruction))
        return;
    if (is_any)
        search->sites.any = site;
    if (is_unmoved)
        search->sites.unmoved = site;
}

/* Whether the search may go on behind this instruction, and with which distance of rsp. */
static bool follow_stack(struct search *search, const struct instruction *instruction)
{
    int64_t bytes;

    if (instruction_stack_effect(instruction, &bytes) == STACK_LOST)
        return false;
    search->sp_offset -= bytes;
    return search->sp_offset >= 0 && search->sp_offset <= SITE_SP_OFFSET_MAX && search->sp_offset % 8 == 0;
}

/* A branch ends the search, unless it is a check for room on the stack. Then all that was found before it
 * runs again when the check fails; the stretch behind it begins with nothing. */
static bool follow_branch(struct search *search, const struct instruction *branch)
{
    if (!search->loops || branch->kind != INSTRUCTION_BRANCH ||
        !stack_check_is(search->map, search->address, search->size, branch))
        return false;
    search->sites = (struct sites){0};
    search->refusal = SITE_OK;
    search->first = search->at + branch->length;
    return true;
}

/* A site behind a locked operation says of calls that they came before it, and does so later: only where
 * there is no other. */
static bool ends_search(const struct search *search, const struct instruction *instruction)
{
    return is_last(instruction) || (instruction->lock && search->sites.any.class != SITE_REFUSED);
}

/* Returns whether the search goes on behind the instruction at search->at. */
static bool step(struct search *search)
{
    struct instruction instruction;

    if (disasm_skim(search->code + search->at, search->size - search->at, search->address + search->at,
                    &instruction) < 0) {
        if (search->refusal == SITE_OK)
            search->refusal = SITE_UNDECODABLE;
        return false;
    }
    if (search->at > 0 && flow_map_has(search->map, instruction.address, FLOW_TARGET))
        return false;
    consider(search, &instruction);
    if (search->sites.any.class == SITE_EMULATED && !search->loops)
        return false; /* nothing behind it is better; only pops could bring rsp back to where it was */
    if (ends_search(search, &instruction) ? !follow_branch(search, &instruction)
                                          : !follow_stack(search, &instruction))
        return false;
    search->at += instruction.length;
    return true;
}

static void conclude(struct site *site, enum site_refusal refusal)
{
    if (site->class == SITE_REFUSED)
        *site = (struct site){.class = SITE_REFUSED, .refusal = refusal == SITE_OK ? SITE_NO_ROOM : refusal};
}

void site_choose(struct disasm *disasm, const struct flow_map *map, const uint8_t *code, size_t size,
                 uint64_t address, struct sites *ret_sites)
{
    struct search search = {.disasm = disasm, .map = map, .code = code, .size = size, .address = address};

    search.refusal = size ? SITE_OK : SITE_EMPTY;
    search.loops = flow_map_loops(map, address);
    for (int count = 0; search.at < size && search.at - search.first < STRETCH_BYTES; count++) {
        size_t first = search.first;

        if (!step(&search) || count == STRETCH_INSTRUCTIONS)
            break;
        if (search.first != first)
            count = 0;
    }
    if (search.loops && search.first == 0) {
        search.sites = (struct sites){0};
        search.refusal = SITE_LOOP;
    }
    conclude(&search.sites.unmoved, search.refusal);
    conclude(&search.sites.any, search.refusal);
    *ret_sites = search.sites;
}

/* ---------------------------------------------------------------------------------------------- words */

const char *site_refusal_text(enum site_refusal refusal)
{
    static const char *const texts[SITE_REFUSALS] = {
        [SITE_OK] = "not refused",
        [SITE_EMPTY] = "no code in the file",
        [SITE_UNDECODABLE] = "no instruction that the disassembler knows",
        [SITE_NO_ROOM] = "nothing in it can be probed",
        [SITE_LOOP] = "a branch leads back to its first instruction",
        [SITE_PREFIX] = "its first instruction has a prefix that probes must not have",
        [SITE_TRAP] = "its first instruction is a trap",
        [SITE_PRIVILEGED] = "its first instruction is a system instruction",
        [SITE_OPCODE] = "its first instruction cannot be probed on every kernel",
        [SITE_CHANGES] = "its code in memory is not that of the file: it is relocated or patched",
        [SITE_IFUNC] = "a resolver of an indirect function",
        [SITE_FRAGMENT] = "a part of another function",
        [SITE_INSIDE] = "it begins inside another function",
        [SITE_NO_SIZE] = "its symbol has no size: it may be a label",
        [SITE_NO_STUB] = "it has no stub, and not all of its calls can be probed (--images its library)",
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
