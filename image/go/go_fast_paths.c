/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A lock operation that was inlined is
 *
 *     lock cmpxchg [rcx], esi; sete dil; test dil, dil; jne BEHIND; mov rax, rdx; call lockSlow
 *     lock xadd [rcx], ebx; dec ebx; test ebx, ebx; je BEHIND; mov rax, rdx; call unlockSlow
 *
 * with any registers, no-ops between, and the slow path somewhere else in the function. So an atomic
 * instruction and a call belong together when one way from the branch behind the first leads to the second
 * without another decision.
 */
#include "image/arch/effects.h"
#include "image/go/go_operations.h"

enum {
    BRANCH_REACH = 24, /* instructions from the atomic one to its branch */
    SLOW_REACH = 40,   /* from the branch to the call */

};

/* The conditional branch that follows instruction `at` without a call, a jump or another atomic one between;
 * code->count: none. */
static size_t branch_behind(const struct go_code *code, size_t at)
{
    for (size_t i = at + 1; i < code->count && i <= at + BRANCH_REACH; i++) {
        if (code->items[i].kind == INSTRUCTION_BRANCH)
            return i;
        if (code->items[i].locked || code->items[i].kind == INSTRUCTION_CALL ||
            code->items[i].kind == INSTRUCTION_JUMP || code->items[i].kind == INSTRUCTION_RETURN)
            break;
    }
    return code->count;
}

/* Whether the code from index `at` on reaches the call at `call` before it decides or calls anything else. */
static bool leads_to_call(const struct go_code *code, size_t at, size_t call)
{
    for (unsigned steps = 0; at < code->count && steps < SLOW_REACH; steps++) {
        const struct instruction *instruction = &code->items[at];

        if (at == call)
            return true;
        switch (instruction->kind) {
        case INSTRUCTION_JUMP:
            at = go_code_find(code, instruction->target);
            break;
        case INSTRUCTION_OTHER:
        case INSTRUCTION_NOP:
        case INSTRUCTION_PUSH:
            if (instruction->locked)
                return false;
            at++;
            break;
        default:
            return false;
        }
    }
    return false;
}

/* Whether the register is the same at the branch as before the atomic instruction. */
static bool is_kept(const struct go_code *code, size_t atomic, size_t branch, enum machine_register reg)
{
    if (reg >= MACHINE_REGISTERS)
        return true;
    if (instruction_exchange_writes(&code->items[atomic], reg))
        return false;
    for (size_t i = atomic + 1; i < branch; i++)
        if (instruction_may_write(&code->items[i], reg))
            return false;
    return true;
}

static bool describe(const struct go_code *code, size_t atomic, size_t branch, bool slow_taken, int32_t field,
                     struct go_fast_path *ret_fast)
{
    const struct instruction *jump = &code->items[branch];
    struct memory_operand memory;

    if (!instruction_memory(&code->items[atomic], &memory))
        return false;
    *ret_fast = (struct go_fast_path){
        .atomic = code->items[atomic].address,
        .branch = jump->address,
        .condition = instruction_condition_code(jump),
        .slow_taken = slow_taken,
        .address_kept =
            is_kept(code, atomic, branch, memory.base) && is_kept(code, atomic, branch, memory.index),
        .base = (uint8_t)memory.base,
        .index = (uint8_t)memory.index,
        .scale = memory.scale,
        .displacement = memory.displacement,
        .field = field,
    };
    return true;
}

bool go_fast_path_of(const struct go_code *code, size_t call, enum go_operation operation,
                     struct go_fast_path *ret_fast)
{
    bool exchanges = operation == GO_LOCK;
    int32_t field = operation == GO_RLOCK || operation == GO_RUNLOCK ? GO_READER_COUNT : 0;

    for (size_t distance = 1; distance < code->count; distance++) {
        /* The nearest first, before the call and behind it. */
        const size_t candidates[2] = {call - distance, call + distance};

        for (size_t k = 0; k < 2; k++) {
            size_t at = candidates[k], branch;

            if (at >= code->count || !(exchanges ? instruction_compares_and_exchanges(&code->items[at])
                                                 : instruction_exchanges_and_adds(&code->items[at])))
                continue;
            branch = branch_behind(code, at);
            if (branch == code->count)
                continue;
            if (leads_to_call(code, branch + 1, call))
                return describe(code, at, branch, false, field, ret_fast);
            if (leads_to_call(code, go_code_find(code, code->items[branch].target), call))
                return describe(code, at, branch, true, field, ret_fast);
        }
    }
    return false;
}

bool go_fast_path_of_try(const struct go_code *code, size_t atomic, struct go_fast_path *ret_fast)
{
    size_t branch = branch_behind(code, atomic);
    bool tested = false, taken_when_zero;

    if (branch == code->count)
        return false;
    /* `sete` and `test` turn ZF round: it is set then when nothing was exchanged. */
    for (size_t i = atomic + 1; i < branch; i++)
        tested |= instruction_tests(&code->items[i]);
    taken_when_zero = instruction_condition(&code->items[branch]) == BRANCH_IF_ZERO;
    return describe(code, atomic, branch, taken_when_zero == tested, 0, ret_fast);
}
