/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the code before a call says of its arguments, which are in registers. */
#include "image/arch/effects.h"
#include "image/elf/pointers.h"
#include "image/go/go_operations.h"

enum {
    ARGUMENT_REACH = 48, /* instructions before a call in which its arguments are made */
    CLOSURE_REACH = 256, /* and a closure, with all that it captures */
    CASE_SIZE = 16,      /* of runtime.scase: {channel, element} */
    RESULT_REACH = 8,    /* instructions behind a call in which its result is tested */
    CASES_MAX = 65536,   /* the language's limit */
};

/* ---------------------------------------------------------------------------------------------- select */

/* The constant that `reg` has before instruction `before`; false: it is none. */
static bool constant_of(const struct go_code *code, size_t before, enum machine_register reg,
                        int64_t *ret_value)
{
    for (size_t i = before; i-- > 0 && before - i <= ARGUMENT_REACH;) {
        const struct instruction *instruction = &code->items[i];
        enum machine_register from, to;

        if (instruction->kind == INSTRUCTION_CALL)
            return false;
        if (instruction_loads_number(instruction, &to, ret_value) && to == reg)
            return true;
        if (instruction_copies(instruction, &from, &to) && to == reg)
            return constant_of(code, i, from, ret_value);
        if (instruction_replaces(instruction, reg))
            return false;
    }
    return false;
}

/* The displacement of the array of cases on the stack, which the first argument has at the call. */
static bool array_of(const struct go_code *code, size_t call, int32_t *ret_displacement)
{
    struct memory_operand memory;
    enum machine_register reg;

    for (size_t i = call; i-- > 0 && call - i <= ARGUMENT_REACH;) {
        if (!instruction_makes_address(&code->items[i], &reg, &memory) || reg != REGISTER_GO_ARGUMENT_1)
            continue;
        *ret_displacement = memory.displacement;
        return go_is_field(&memory) && memory.base == REGISTER_STACK;
    }
    return false;
}

/* The line of the store that gives the case at `place` of the stack its channel. Nothing but `setter` is
 * called between these stores. */
static unsigned line_of_case(struct elf_image *image, const struct go_code *code, size_t call,
                             uint64_t setter, int32_t place)
{
    struct memory_operand memory;
    struct go_frame frame;
    enum machine_register reg;

    for (size_t i = call; i-- > 0;) {
        if (code->items[i].kind == INSTRUCTION_CALL && (!setter || code->items[i].target != setter))
            break;
        if (instruction_stores(&code->items[i], true, &reg, &memory) && go_is_field(&memory) &&
            memory.base == REGISTER_STACK && memory.displacement == place &&
            gopclntab_frames(image, code->items[i].address, &frame, 1))
            return frame.line;
    }
    return 0;
}

int go_select_cases(struct elf_image *image, const struct go_code *code, size_t call, uint64_t setter,
                    struct go_case *cases, size_t capacity, bool *ret_blocks)
{
    int64_t sends, receives, blocks;
    int32_t array;

    if (!constant_of(code, call, REGISTER_GO_ARGUMENT_4, &sends) ||
        !constant_of(code, call, REGISTER_GO_ARGUMENT_5, &receives) ||
        !constant_of(code, call, REGISTER_GO_ARGUMENT_6, &blocks) || !array_of(code, call, &array) ||
        sends < 0 || receives < 0 || sends + receives > CASES_MAX || (uint64_t)(sends + receives) > capacity)
        return -1;
    *ret_blocks = blocks & 1;
    for (int32_t i = 0; i < sends + receives; i++)
        cases[i] = (struct go_case){.number = (unsigned)i,
                                    .send = i < sends,
                                    .line = line_of_case(image, code, call, setter, array + CASE_SIZE * i)};
    return (int)(sends + receives);
}

/* ---------------------------------------------------------------------------------------------- range */

/* `for range` asks whether there was something to receive in its own line, and comes back to the call; `v, ok
 * := <-c` asks in a later line. */
bool go_is_range(struct elf_image *image, const struct go_code *code, size_t call)
{
    uint64_t address = code->items[call].address;
    struct go_frame frame, asking;
    size_t branch = call + 1;

    while (branch < code->count && branch <= call + RESULT_REACH &&
           code->items[branch].kind != INSTRUCTION_BRANCH)
        branch++;
    if (branch >= code->count || code->items[branch].kind != INSTRUCTION_BRANCH ||
        !gopclntab_frames(image, address, &frame, 1) ||
        !gopclntab_frames(image, code->items[branch].address, &asking, 1) || frame.line != asking.line)
        return false;
    for (size_t i = call + 1; i < code->count; i++)
        if ((code->items[i].kind == INSTRUCTION_BRANCH || code->items[i].kind == INSTRUCTION_JUMP) &&
            code->items[i].target <= address && code->items[i].target > code->items[0].address)
            return true;
    return false;
}

/* ---------------------------------------------------------------------------------------------- go */

/* An instruction from which the one at `at` is reached: the one before or, where that goes elsewhere, the
 * first that jumps here; code->count: there is none. No-ops that only fill up are nobody's. */
static size_t predecessor(const struct go_code *code, size_t at)
{
    size_t before = at;

    while (before && code->items[before - 1].kind == INSTRUCTION_NOP)
        before--;
    if (before && code->items[before - 1].kind != INSTRUCTION_JUMP &&
        code->items[before - 1].kind != INSTRUCTION_RETURN &&
        code->items[before - 1].kind != INSTRUCTION_TRAP)
        return before - 1;
    for (size_t i = 0; i < code->count; i++)
        if (code->items[i].target >= code->items[before].address &&
            code->items[i].target <= code->items[at].address)
            return i;
    return code->count;
}

/* Whether a following instruction stores `reg` at the begin of what it points to: a new closure's function.
 */
static bool begins_closure(const struct go_code *code, size_t at, enum machine_register reg)
{
    struct memory_operand memory;
    enum machine_register stored;

    for (size_t i = at + 1; i < code->count && i < at + RESULT_REACH; i++)
        if (instruction_stores(&code->items[i], true, &stored, &memory) && stored == reg &&
            go_is_field(&memory) && memory.displacement == 0)
            return true;
    return false;
}

/* The argument points to a function value: a static one, whose address is loaded, or a new closure, whose
 * first word is stored before. */
uint64_t go_started(struct elf_image *image, const struct go_code *code, size_t call)
{
    size_t at = predecessor(code, call);

    for (unsigned steps = 0; at < code->count && steps < CLOSURE_REACH; steps++) {
        enum machine_register reg;
        uint64_t target, function;
        bool made = instruction_makes_fixed_address(&code->items[at], &reg, &target);
        size_t available;

        if (made && elf_image_code(image, target, &available)) {
            if (begins_closure(code, at, reg))
                return target;
        } else if (made && reg == REGISTER_GO_ARGUMENT_1 && image_pointer_at(image, target, &function) &&
                   elf_image_code(image, function, &available)) {
            return function;
        }
        at = predecessor(code, at);
    }
    return 0;
}
