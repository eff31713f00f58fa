/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Facts about single instructions: each is true of the forms that it knows, and of no neighbour of theirs. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "image/arch/code_bytes.h"
#include "image/arch/effects.h"
#include "image/arch/operands.h"

#define AT 0x1000

/* The bytes end where the memory that may be read does. */
static struct instruction skim(const char *bytes, size_t size)
{
    static uint8_t *code;
    struct instruction instruction;

    free(code);
    code = malloc(size);
    memcpy(code, bytes, size);
    cr_assert_eq(disasm_skim(code, size, AT, &instruction), 0);
    return instruction;
}
#define SKIM(bytes) skim(bytes, sizeof(bytes) - 1)

Test(operands, numbers)
{
    static const struct {
        const char *code;
        size_t size;
        int reg; /* -1: no number is loaded */
        int64_t number;
    } table[] = {
        {"\xb8\x0f\0\0\0", 5, 0, 15},                     /* mov $15, %eax */
        {"\x41\xbf\xff\xff\xff\xff", 6, 15, -1},          /* mov $-1, %r15d */
        {"\x48\xbe\1\0\0\0\2\0\0\0", 10, 6, 0x200000001}, /* movabs, %rsi */
        {"\x48\xc7\xc7\xfe\xff\xff\xff", 7, 7, -2},       /* mov $-2, %rdi */
        {"\x31\xc0", 2, 0, 0},                            /* xor %eax, %eax */
        {"\x31\xc8", 2, -1, 0},                           /* xor %ecx, %eax */
        {"\xc7\x00\1\0\0\0", 6, -1, 0},                   /* movl $1, (%rax) */
        {"\x66\xb8\1\0", 4, -1, 0},                       /* mov $1, %ax */
        {"\x55", 1, -1, 0},                               /* push %rbp */
    };

    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct instruction instruction = skim(table[i].code, table[i].size);
        enum machine_register reg;
        int64_t number;
        bool loads = instruction_loads_number(&instruction, &reg, &number);

        cr_expect_eq(loads, table[i].reg >= 0, "%zu", i);
        if (loads)
            cr_expect(reg == (enum machine_register)table[i].reg && number == table[i].number, "%zu", i);
    }
}

Test(operands, copies_and_addresses)
{
    enum machine_register from, to;
    struct memory_operand memory;
    struct instruction instruction = SKIM("\x48\x89\xc3"); /* mov %rax, %rbx */
    uint64_t address;

    cr_expect(instruction_copies(&instruction, &from, &to) && from == 0 && to == 3);
    cr_expect(instruction_replaces(&instruction, to) && !instruction_replaces(&instruction, from));
    instruction = SKIM("\x48\x8b\xd8"); /* the same in the other form */
    cr_expect(instruction_copies(&instruction, &from, &to) && from == 0 && to == 3);
    instruction = SKIM("\x48\x8b\x03"); /* mov (%rbx), %rax */
    cr_expect(!instruction_copies(&instruction, &from, &to));
    cr_expect(instruction_loads(&instruction, true, &to, &memory) && to == 0 && memory.base == 3);
    cr_expect(!instruction_loads(&instruction, false, &to, &memory));
    instruction = SKIM("\x48\x8d\x05\x10\0\0\0"); /* lea 16(%rip), %rax */
    cr_expect(instruction_makes_fixed_address(&instruction, &to, &address) && to == 0 && address == AT + 23);
    instruction = SKIM("\x48\x8b\x05\x10\0\0\0"); /* mov 16(%rip), %rax */
    cr_expect(!instruction_makes_fixed_address(&instruction, &to, &address));
    cr_expect(instruction_fixed_memory(&instruction, &address) && address == AT + 23);
}

Test(operands, conditions)
{
    static const struct {
        const char *code;
        size_t size;
        enum branch_condition condition;
    } table[] = {
        {"\x74\x00", 2, BRANCH_IF_ZERO},
        {"\x0f\x84\0\0\0\0", 6, BRANCH_IF_ZERO},
        {"\x75\x00", 2, BRANCH_IF_NOT_ZERO},
        {"\x77\x00", 2, BRANCH_IF_ABOVE},
        {"\x0f\x86\0\0\0\0", 6, BRANCH_IF_NOT_ABOVE},
        {"\x7f\x00", 2, BRANCH_IF_OTHER}, /* jg */
        {"\xe4\x00", 2, BRANCH_IF_OTHER}, /* in, no branch */
        {"\xe2\x00", 2, BRANCH_IF_OTHER}, /* loop */
    };

    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct instruction instruction = skim(table[i].code, table[i].size);

        cr_expect_eq(instruction_condition(&instruction), table[i].condition, "%zu", i);
    }
}

Test(effects, what_is_not_known_may_write)
{
    struct instruction instruction = SKIM("\x0f\xa2"); /* cpuid */

    cr_expect_eq(instruction_written_register(&instruction), -EILSEQ);
    cr_expect(instruction_may_write(&instruction, REGISTER_GO_ARGUMENT_2));
    instruction = SKIM("\xf0\x0f\xb1\x0b"); /* lock cmpxchg %ecx, (%rbx) */
    cr_expect(instruction_compares_and_exchanges(&instruction) && instruction_is_atomic(&instruction));
    cr_expect(instruction_exchange_writes(&instruction, REGISTER_GO_ARGUMENT_1));
    cr_expect_not(instruction_exchange_writes(&instruction, REGISTER_GO_ARGUMENT_2));
    instruction = SKIM("\x0f\x05"); /* syscall */
    cr_expect(instruction_is_system_call(&instruction));
}

Test(code_bytes, distances)
{
    static const uint8_t code[] = {0x90, 0xe8, 4, 0, 0, 0, 0x0f, 0x84, 0xfa, 0xff, 0xff, 0xff};
    size_t opcode;

    cr_expect(code_is_call(code + 1) && !code_is_jump(code + 1));
    cr_expect_eq(code_call_target(code + 1, AT), AT + 9);
    cr_expect_eq(code_reference(code + 2, 2, &opcode), CODE_REFERENCE_CALL);
    cr_expect_eq(opcode, 1);
    cr_expect_eq(code_reference(code + 8, 8, &opcode), CODE_REFERENCE_BRANCH);
    cr_expect_eq(opcode, 2);
    cr_expect_eq(code_reference(code + 8, 0, NULL), CODE_NO_REFERENCE,
                 "bytes before the memory are not read");
    cr_expect_eq(code_branch_lead(code + 6), 2);
    cr_expect_eq(code_branch_lead(code), 0);
}
