/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/plan/site.h"

#include "collector/plan/stack_check.h"
#include "image/arch/effects.h"
#include "image/arch/stack_effect.h"

/* How far a site may lie behind the entry, or behind a check for room on the stack. */
#define STRETCH_BYTES 160
#define STRETCH_INSTRUCTIONS 32

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
    switch (instruction->kind) {
    case INSTRUCTION_OTHER:
    case INSTRUCTION_ENDBR:
    case INSTRUCTION_NOP:
    case INSTRUCTION_PUSH:
        return instruction_may_stay(instruction);
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

/* Whether the search may continue after this instruction, and with which distance of the stack pointer. */
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
    return is_last(instruction) || (instruction->locked && search->sites.any.class != SITE_REFUSED);
}

/* Returns whether the search continues after the instruction at search->at. */
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
        return false; /* nothing behind it is better; only pops could bring the stack pointer back to where it
                         was */
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
