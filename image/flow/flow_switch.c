/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "image/flow/flow_switch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "image/arch/operands.h"

/* How far before the jump the comparison and the table may stand, in instructions. */
#define REACH 24

/* Compilers make no larger tables. */
#define ENTRIES_MAX (16 << 10)

struct table {
    uint64_t address;
    bool distances; /* of 4 bytes from the table, or else addresses of 8 */
    size_t entries;
};

/* ---------------------------------------------------------------------------------------------- instructions
 */

static const struct instruction *before(const struct flow_run *run, size_t steps)
{
    return steps < run->count && steps <= REACH ? &run->items[run->count - 1 - steps] : NULL;
}

static bool is_lea_of_data(const struct instruction *instruction, uint64_t *ret_address)
{
    struct memory_operand memory;

    if (instruction->vex || instruction->opcode[0] != 0x8d || !instruction_memory(instruction, &memory) ||
        memory.base != REGISTER_PC)
        return false;
    *ret_address = instruction->address + instruction->length + (uint64_t)(int64_t)memory.displacement;
    return true;
}

/* The immediate at the end of the instruction, `size` bytes of it, extended with its sign. */
static int64_t last_bytes(const struct instruction *instruction, size_t size)
{
    const uint8_t *at = instruction->code + instruction->length - size;
    int32_t value = 0;

    if (size == 1)
        return (int8_t)*at;
    memcpy(&value, at, sizeof(value));
    return value;
}

/* Compares (or subtracts, which sets the same flags) an immediate: cmp and sub in the forms with an
 * immediate. */
static bool is_comparison(const struct instruction *instruction, int64_t *ret_bound)
{
    uint8_t opcode = instruction->opcode[0], field = (instruction->modrm >> 3) & 7;
    bool in_modrm = (opcode == 0x80 || opcode == 0x81 || opcode == 0x83) && (field == 5 || field == 7);
    bool with_rax = opcode == 0x2c || opcode == 0x2d || opcode == 0x3c || opcode == 0x3d;

    if (instruction->vex || instruction->operand_size || (!in_modrm && !with_rax))
        return false;
    *ret_bound = last_bytes(instruction, opcode == 0x81 || opcode == 0x2d || opcode == 0x3d ? 4 : 1);
    return true;
}

/* `ja`: taken when the index is above the bound. */
static bool is_above(const struct instruction *instruction)
{
    return instruction->kind == INSTRUCTION_BRANCH &&
           (instruction->opcode[0] == 0x77 || instruction->opcode[1] == 0x87);
}

/* ---------------------------------------------------------------------------------------------- the table */

/* How many entries the nearest comparison before the jump lets through; 0: not known. */
static size_t entries_of(const struct flow_run *run)
{
    const struct instruction *instruction;
    bool branch = false;
    int64_t bound;

    for (size_t steps = 1; (instruction = before(run, steps)); steps++) {
        if (instruction->kind == INSTRUCTION_CALL || instruction->kind == INSTRUCTION_CALL_INDIRECT)
            return 0;
        if (branch && is_comparison(instruction, &bound))
            return bound >= 0 && bound < ENTRIES_MAX ? (size_t)bound + 1 : 0;
        if (instruction->kind != INSTRUCTION_BRANCH)
            continue;
        if (branch || !is_above(instruction))
            return 0;
        branch = true;
    }
    return 0;
}

/* The one address of data that the function puts into `reg`; 0 when there are several. */
static uint64_t base_in_function(const struct flow_run *run, enum machine_register reg)
{
    uint64_t found = 0, address;

    for (size_t i = 0; i < run->all_count; i++) {
        if (!is_lea_of_data(&run->all[i], &address) || flow_reg_operand(&run->all[i]) != reg)
            continue;
        if (found && found != address)
            return 0;
        found = address;
    }
    return found;
}

/* `jmp *%reg` behind `add %base, %reg`: the table's address is in %base. */
static bool find_distances(const struct flow_run *run, struct table *table)
{
    const struct instruction *jump = before(run, 0), *add = before(run, 1), *instruction;
    enum machine_register base;

    if (!add || add->opcode[0] != 0x01 || flow_rm_operand(add) != flow_rm_operand(jump))
        return false;
    base = flow_reg_operand(add);
    table->distances = true;
    for (size_t steps = 2; (instruction = before(run, steps)); steps++)
        if (is_lea_of_data(instruction, &table->address) && flow_reg_operand(instruction) == base)
            return true;
    table->address = base_in_function(run, base);
    return table->address;
}

/* A memory operand that is a table of addresses: no base register and an index of 8 bytes. */
static bool names_table(const struct instruction *instruction, struct table *table)
{
    struct memory_operand memory;

    if (!instruction_memory(instruction, &memory) || memory.base != REGISTER_NONE ||
        memory.index == REGISTER_NONE || memory.scale != 8 || memory.displacement <= 0)
        return false;
    table->address = (uint64_t)memory.displacement;
    table->distances = false;
    return true;
}

static bool find_addresses(const struct flow_run *run, struct table *table)
{
    const struct instruction *jump = before(run, 0), *load = before(run, 1);

    if (names_table(jump, table))
        return true;
    return flow_rm_operand(jump) != REGISTER_NONE && load && load->opcode[0] == 0x8b &&
           flow_reg_operand(load) == flow_rm_operand(jump) && names_table(load, table);
}

/* ---------------------------------------------------------------------------------------------- the targets
 */

static uint64_t entry_of(const struct table *table, const uint8_t *bytes, size_t index)
{
    uint64_t address;
    int32_t distance;

    if (table->distances) {
        memcpy(&distance, bytes + index * sizeof(distance), sizeof(distance));
        return table->address + (uint64_t)(int64_t)distance;
    }
    memcpy(&address, bytes + index * sizeof(address), sizeof(address));
    return address;
}

int flow_switch_targets(struct elf_image *image, const struct flow_run *run, uint64_t **ret_targets,
                        size_t *ret_count)
{
    struct table table = {0};
    const uint8_t *bytes;
    uint64_t *targets;
    size_t size = 0;

    if (run->count == 0 || (!find_distances(run, &table) && !find_addresses(run, &table)))
        return -ENOENT;
    table.entries = entries_of(run);
    bytes = elf_image_bytes(image, table.address, &size);
    if (table.entries == 0 || !bytes || size / (table.distances ? 4 : 8) < table.entries)
        return -ENOENT;
    targets = calloc(table.entries, sizeof(*targets));
    if (!targets)
        return -ENOMEM;
    for (size_t i = 0; i < table.entries; i++)
        targets[i] = entry_of(&table, bytes, i);
    *ret_targets = targets;
    *ret_count = table.entries;
    return 0;
}
