/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Read are the two forms that gcc and clang write:
 *
 *     lea table(%rip), %a;  movslq (%a, %i, 4), %b;  add %a, %b;  jmp *%b      distances from the table
 *     jmp *table(, %i, 8), or  mov table(, %i, 8), %b;  jmp *%b                addresses
 *
 * and how many entries there are from the comparison with the index's bound before it. Without such a
 * comparison, and with every other form, the jump is not resolved.
 */
#include "image/arch/switch_table.h"

#include "image/arch/operands.h"
#include "image/arch/x86_64/form.h"

/* How far before the jump the comparison and the table may stand, in instructions. */
#define REACH 24

/* Compilers make no larger tables. */
#define ENTRIES_MAX (16 << 10)

/* ---------------------------------------------------------------------------------------------- instructions
 */

static const struct instruction *before(const struct flow_run *run, size_t steps)
{
    return steps < run->count && steps <= REACH ? &run->items[run->count - 1 - steps] : NULL;
}

/* Compares (or subtracts, which sets the same flags) an immediate: cmp and sub in the forms with an
 * immediate. */
static bool is_comparison(const struct instruction *instruction, int64_t *ret_bound)
{
    const struct form form = form_of(instruction);
    uint8_t opcode = form.opcode[0], group = form_group(&form);
    bool in_modrm = (opcode == 0x80 || opcode == 0x81 || opcode == 0x83) && (group == 5 || group == 7);
    bool with_rax = opcode == 0x2c || opcode == 0x2d || opcode == 0x3c || opcode == 0x3d;

    if (form.vex || form.operand_size || (!in_modrm && !with_rax))
        return false;
    *ret_bound = form_number(instruction, opcode == 0x81 || opcode == 0x2d || opcode == 0x3d ? 4 : 1);
    return true;
}

/* ---------------------------------------------------------------------------------------------- the table */

/* How many entries the nearest comparison before the jump lets through; 0: not known. */
static size_t entries_of(const struct flow_run *run)
{
    const struct instruction *instruction;
    bool branch = false;
    int64_t bound;

    for (size_t steps = 1; (instruction = before(run, steps)); steps++) {
        if (instruction_is_call(instruction))
            return 0;
        if (branch && is_comparison(instruction, &bound))
            return bound >= 0 && bound < ENTRIES_MAX ? (size_t)bound + 1 : 0;
        if (instruction->kind != INSTRUCTION_BRANCH)
            continue;
        if (branch || instruction_condition(instruction) != BRANCH_IF_ABOVE)
            return 0;
        branch = true;
    }
    return 0;
}

/* The one address of data that the function puts into `reg`; 0 when there are several. */
static uint64_t base_in_function(const struct flow_run *run, enum machine_register reg)
{
    uint64_t found = 0, address;
    enum machine_register to;

    for (size_t i = 0; i < run->all_count; i++) {
        if (!instruction_makes_fixed_address(&run->all[i], &to, &address) || to != reg)
            continue;
        if (found && found != address)
            return 0;
        found = address;
    }
    return found;
}

/* `jmp *%reg` behind `add %base, %reg`: the table's address is in %base. */
static bool find_distances(const struct flow_run *run, struct switch_table *table)
{
    const struct instruction *jump = before(run, 0), *add = before(run, 1), *instruction;
    enum machine_register base, sum, through, to;

    if (!add || !instruction_goes_through(jump, &through) || !instruction_adds(add, &base, &sum) ||
        sum != through)
        return false;
    table->distances = true;
    for (size_t steps = 2; (instruction = before(run, steps)); steps++)
        if (instruction_makes_fixed_address(instruction, &to, &table->address) && to == base)
            return true;
    table->address = base_in_function(run, base);
    return table->address;
}

/* A memory operand that is a table of addresses: no base register and an index of 8 bytes. */
static bool names_table(const struct instruction *instruction, struct switch_table *table)
{
    struct memory_operand memory;

    if (!instruction_memory(instruction, &memory) || memory.base != REGISTER_NONE ||
        memory.index == REGISTER_NONE || memory.scale != 8 || memory.displacement <= 0)
        return false;
    table->address = (uint64_t)memory.displacement;
    table->distances = false;
    return true;
}

static bool find_addresses(const struct flow_run *run, struct switch_table *table)
{
    const struct instruction *jump = before(run, 0), *load = before(run, 1);
    enum machine_register through, to;
    struct memory_operand memory;

    if (names_table(jump, table))
        return true;
    return instruction_goes_through(jump, &through) && load && instruction_accesses(load, &to, &memory) &&
           to == through && names_table(load, table);
}

bool switch_table_find(const struct flow_run *run, struct switch_table *ret_table)
{
    *ret_table = (struct switch_table){0};
    if (run->count == 0 || (!find_distances(run, ret_table) && !find_addresses(run, ret_table)))
        return false;
    ret_table->entries = entries_of(run);
    return ret_table->entries > 0;
}
