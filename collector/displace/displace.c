/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/displace/displace.h"

#include "collector/arch/relocate.h"
#include "image/arch/code_bytes.h"
#include "image/arch/effects.h"
#include "image/arch/stack_effect.h"
#include "image/flow/branch_targets.h"

#define PAGE 4096u
#define PUSHED_MOST (1 << 20) /* bytes; more than functions have of a frame that is made at once */

/* Whether `code` begins with enough padding to make up what is left of the patched bytes. */
static enum displace_refusal check_padding(const uint8_t *code, size_t size, size_t wanted)
{
    struct instruction instruction;

    if (size < wanted)
        return DISPLACE_SHORT;
    for (size_t at = 0; at < wanted; at += instruction.length) {
        if (code_is_trap(code + at)) {
            instruction.length = CODE_TRAP_BYTES;
            continue;
        }
        if (disasm_skim(code + at, size - at, 0, &instruction) < 0 || instruction.kind != INSTRUCTION_NOP)
            return DISPLACE_BEHIND_JUMP;
    }
    return DISPLACE_OK;
}

/* Takes in the instruction at the end of what moves so far. */
static enum displace_refusal take(struct disasm *disasm, const struct displace_subject *patched,
                                  struct displacement *displacement)
{
    size_t at = displacement->length;
    struct instruction instruction;

    if (at == patched->size)
        return DISPLACE_SHORT;
    if (!disasm_agree(disasm, patched->code + at, patched->size - at, patched->address + at, &instruction))
        return DISPLACE_UNDECODABLE;
    if (!relocate_can(&instruction))
        return DISPLACE_UNMOVABLE;
    displacement->starts[displacement->count++] = (uint8_t)at;
    displacement->length += instruction.length;
    displacement->calls = instruction_is_call(&instruction);
    displacement->falls = !displacement->calls && !instruction_leaves(&instruction);
    if (displacement->length >= DISPLACE_JUMP || displacement->falls)
        return DISPLACE_OK;
    if (displacement->calls)
        return DISPLACE_RETURN;
    at = displacement->length;
    return check_padding(patched->code + at, patched->room - at, DISPLACE_JUMP - at);
}

/* `patched` begins where the patched bytes do. */
static enum displace_refusal collect(struct disasm *disasm, const struct displace_subject *patched,
                                     struct displacement *displacement)
{
    enum displace_refusal refusal;

    do {
        refusal = take(disasm, patched, displacement);
    } while (refusal == DISPLACE_OK && displacement->falls && displacement->length < DISPLACE_JUMP);
    return refusal;
}

/* Whether the function's first instruction may stay in front of the jump: every call that executes it then reaches the
 * jump. */
static bool can_stay(const struct instruction *first, struct displacement *ret_displacement)
{
    int64_t moved;

    if (!instruction_only_computes(first) || instruction_stack_effect(first, &moved) == STACK_LOST ||
        moved > 0 || moved < -PUSHED_MOST)
        return false;
    *ret_displacement = (struct displacement){.offset = first->length, .pushed = (uint32_t)-moved};
    return true;
}

/* Replaces what is at `displacement->offset`. */
static enum displace_refusal displace_at(struct disasm *disasm, const struct flow_map *map,
                                         const struct displace_subject *subject,
                                         struct displacement *displacement)
{
    struct displace_subject patched = *subject;
    enum displace_refusal refusal;

    patched.code += displacement->offset;
    patched.address += displacement->offset;
    patched.size -= displacement->offset;
    patched.room -= displacement->offset;
    refusal = collect(disasm, &patched, displacement);
    if (refusal != DISPLACE_OK)
        return refusal;
    if (patched.address % PAGE > PAGE - DISPLACE_JUMP)
        return DISPLACE_TWO_PAGES;
    if (flow_map_has_any(map, patched.address,
                         displacement->length > DISPLACE_JUMP ? displacement->length : DISPLACE_JUMP,
                         FLOW_CHANGES))
        return DISPLACE_CHANGES;
    if (branch_targets_within(map, patched.address + (displacement->offset ? 0 : 1),
                              patched.address + DISPLACE_JUMP - 1))
        return DISPLACE_TARGET;
    displacement->liveness = liveness_look(disasm, patched.code, patched.size);
    return DISPLACE_OK;
}

enum displace_refusal displace_function(struct disasm *disasm, const struct flow_map *map,
                                        const struct displace_subject *subject,
                                        struct displacement *ret_displacement)
{
    struct displacement displacement;
    struct instruction first;
    enum displace_refusal refusal = DISPLACE_OK;
    bool stays;

    if (subject->size == 0)
        return DISPLACE_EMPTY;
    if (flow_map_loops(map, subject->address))
        return DISPLACE_LOOP;
    if (!disasm_agree(disasm, subject->code, subject->size, subject->address, &first))
        return DISPLACE_UNDECODABLE;
    stays = can_stay(&first, &displacement);
    if (stays)
        refusal = displace_at(disasm, map, subject, &displacement);
    if (!stays || (refusal != DISPLACE_OK && first.kind != INSTRUCTION_ENDBR)) {
        displacement = (struct displacement){0};
        refusal = displace_at(disasm, map, subject, &displacement);
    }
    if (refusal == DISPLACE_OK)
        *ret_displacement = displacement;
    return refusal;
}

const char *displace_refusal_text(enum displace_refusal refusal)
{
    static const char *const texts[DISPLACE_REFUSALS] = {
        [DISPLACE_OK] = "not refused",
        [DISPLACE_NO_FUNCTION] = "not a function that is called",
        [DISPLACE_EMPTY] = "no code in the file",
        [DISPLACE_SHORT] = "shorter than a jump",
        [DISPLACE_UNDECODABLE] = "an instruction at its beginning is unknown",
        [DISPLACE_UNMOVABLE] = "an instruction at its beginning cannot be moved",
        [DISPLACE_TARGET] = "something leads into its first bytes",
        [DISPLACE_RETURN] = "a call returns into its first bytes",
        [DISPLACE_BEHIND_JUMP] = "other code begins within its first bytes",
        [DISPLACE_CHANGES] = "its first bytes are relocated or patched in memory",
        [DISPLACE_LOOP] = "a branch leads back to its first instruction",
        [DISPLACE_TWO_PAGES] = "its first bytes lie in two pages",
    };

    return refusal < DISPLACE_REFUSALS && texts[refusal] ? texts[refusal] : "unknown";
}
