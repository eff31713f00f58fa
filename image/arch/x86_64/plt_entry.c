/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 *     [endbr64] [mov $n, %r11d] [bnd] jmp *slot(%rip)       all linkers
 *     mov slot(%rip), %r11; call THUNK or jmp THUNK         lld -z retpolineplt
 */
#include "image/arch/plt_entry.h"

#include "image/arch/operands.h"

enum { R11 = 11 };

bool plt_entry_exit(const struct instruction *instruction, uint64_t *ret_slot)
{
    return instruction->kind == INSTRUCTION_JUMP_INDIRECT && instruction_fixed_memory(instruction, ret_slot);
}

bool plt_entry_load(const struct instruction *instruction, uint64_t *ret_slot)
{
    struct memory_operand memory;
    enum machine_register reg;

    return instruction_loads(instruction, true, &reg, &memory) && (int)reg == R11 &&
           instruction_fixed_memory(instruction, ret_slot);
}
