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
#include "image/go/go_operations.h"

enum {
    BRANCH_REACH = 24, /* instructions from the atomic one to its branch */
    SLOW_REACH = 40,   /* from the branch to the call */

};

static bool is_atomic(const struct instruction *instruction, uint8_t opcode)
{
    return instruction->lock && !instruction->vex && instruction->opcode[0] == 0x0f &&
           instruction->opcode[1] == opcode;
}

bool go_is_compare_exchange(const struct instruction *instruction)
{
    return is_atomic(instruction, 0xb1);
}

bool go_is_atomic(const struct instruction *instruction)
{
    bool exchanges = !instruction->vex && (instruction->opcode[0] == 0x86 || instruction->opcode[0] == 0x87);

    return instruction->lock || (exchanges && flow_rm_operand(instruction) == REGISTER_NONE);
}

static bool is_exchange_add(const struct instruction *instruction)
{
    return is_atomic(instruction, 0xc1);
}

/* The conditional branch that follows instruction `at` without a call, a jump or another atomic one between;
 * code->count: none. */
static size_t branch_behind(const struct go_code *code, size_t at)
{
    for (size_t i = at + 1; i < code->count && i <= at + BRANCH_REACH; i++) {
        if (code->items[i].kind == INSTRUCTION_BRANCH)
            return i;
        if (code->items[i].lock || code->items[i].kind == INSTRUCTION_CALL ||
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
            if (instruction->lock)
                return false;
            at++;
            break;
        default:
            return false;
        }
    }
    return false;
}

bool go_may_write(const struct instruction *instruction, uint8_t reg)
{
    uint8_t opcode = instruction->opcode[0], second = instruction->opcode[1];
    enum machine_register rm = flow_rm_operand(instruction);

    if (instruction->kind == INSTRUCTION_NOP || reg >= REGISTER_PC)
        return false;
    switch (opcode) {
    case 0x84: /* test, cmp */
    case 0x85:
    case 0x38 ... 0x3d:
    case 0xa8:
    case 0xa9:
        return false;
    case 0xb8 ... 0xbf: /* mov of a number */
        return ((opcode & 7) | (instruction->rex & 1) << 3) == reg;
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
        return (uint8_t)rm == reg;
    case 0x83: /* cmp is one of the group */
    case 0x81:
        return (uint8_t)rm == reg && go_group(instruction) != 7;
    case 0x03: /* the same to a register */
    case 0x0b:
    case 0x23:
    case 0x2b:
    case 0x33:
    case 0x8a:
    case 0x8b:
    case 0x8d:
        return (uint8_t)flow_reg_operand(instruction) == reg;
    case 0x0f:
        if (second == 0x10 || second == 0x11) /* movups */
            return false;
        if (second >= 0x90 && second <= 0x9f) /* setcc */
            return (uint8_t)rm == reg;
        if (second == 0xb6 || second == 0xb7) /* movzx */
            return (uint8_t)flow_reg_operand(instruction) == reg;
        return true;
    default:
        return true;
    }
}

/* The atomic instruction itself writes rax (cmpxchg) or its register operand (xadd). */
static bool is_kept(const struct go_code *code, size_t atomic, size_t branch, uint8_t reg)
{
    const struct instruction *instruction = &code->items[atomic];

    if (reg >= REGISTER_PC)
        return true;
    if (is_exchange_add(instruction) ? (uint8_t)flow_reg_operand(instruction) == reg
                                     : reg == REGISTER_GO_ARGUMENT_1)
        return false;
    for (size_t i = atomic + 1; i < branch; i++)
        if (go_may_write(&code->items[i], reg))
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
        .condition = (jump->opcode[0] == 0x0f ? jump->opcode[1] : jump->opcode[0]) & 15,
        .slow_taken = slow_taken,
        .address_kept = is_kept(code, atomic, branch, (uint8_t)memory.base) &&
                        is_kept(code, atomic, branch, (uint8_t)memory.index),
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

            if (at >= code->count ||
                !(exchanges ? go_is_compare_exchange(&code->items[at]) : is_exchange_add(&code->items[at])))
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
        tested |= code->items[i].opcode[0] == 0x84 || code->items[i].opcode[0] == 0x85;
    taken_when_zero = !((code->items[branch].opcode[0] == 0x0f ? code->items[branch].opcode[1]
                                                               : code->items[branch].opcode[0]) &
                        1);
    return describe(code, atomic, branch, taken_when_zero == tested, 0, ret_fast);
}
