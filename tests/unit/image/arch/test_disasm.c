/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <errno.h>

#include "base/array.h"
#include "image/arch/x86_64/form.h"

#define AT 0x1000u

static const struct {
    const char *text;
    uint8_t length;
    enum instruction_kind kind;
    uint64_t target;
    uint8_t code[15];
} table[] = {
    {"endbr64", 4, INSTRUCTION_ENDBR, 0, {0xf3, 0x0f, 0x1e, 0xfa}},
    {"nop", 1, INSTRUCTION_NOP, 0, {0x90}},
    {"data16 nop", 2, INSTRUCTION_NOP, 0, {0x66, 0x90}},
    {"nopw cs:", 10, INSTRUCTION_NOP, 0, {0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0}},
    {"pause", 2, INSTRUCTION_OTHER, 0, {0xf3, 0x90}},
    {"xchg %r8, %rax", 2, INSTRUCTION_OTHER, 0, {0x49, 0x90}},
    {"push %rbp", 1, INSTRUCTION_PUSH, 0, {0x55}},
    {"push %r15", 2, INSTRUCTION_PUSH, 0, {0x41, 0x57}},
    {"je short", 2, INSTRUCTION_BRANCH, AT + 2 + 5, {0x74, 0x05}},
    {"je back", 2, INSTRUCTION_BRANCH, AT, {0x74, 0xfe}},
    {"je near", 6, INSTRUCTION_BRANCH, AT + 6 + 0x100, {0x0f, 0x84, 0x00, 0x01, 0, 0}},
    {"loop", 2, INSTRUCTION_BRANCH, AT, {0xe2, 0xfe}},
    {"jmp short", 2, INSTRUCTION_JUMP, AT + 2 + 0x7f, {0xeb, 0x7f}},
    {"jmp near", 5, INSTRUCTION_JUMP, AT + 5 - 0x10, {0xe9, 0xf0, 0xff, 0xff, 0xff}},
    {"bnd jmp near", 6, INSTRUCTION_JUMP, AT + 6, {0xf2, 0xe9, 0, 0, 0, 0}},
    {"call", 5, INSTRUCTION_CALL, AT + 5 + 1, {0xe8, 0x01, 0, 0, 0}},
    {"call *%rax", 2, INSTRUCTION_CALL_INDIRECT, 0, {0xff, 0xd0}},
    {"jmp *0(%rip)", 6, INSTRUCTION_JUMP_INDIRECT, 0, {0xff, 0x25, 0, 0, 0, 0}},
    {"inc %eax", 2, INSTRUCTION_OTHER, 0, {0xff, 0xc0}},
    {"ret", 1, INSTRUCTION_RETURN, 0, {0xc3}},
    {"repz ret", 2, INSTRUCTION_RETURN, 0, {0xf3, 0xc3}},
    {"ret 8", 3, INSTRUCTION_RETURN, 0, {0xc2, 0x08, 0x00}},
    {"int3", 1, INSTRUCTION_TRAP, 0, {0xcc}},
    {"int 0x80", 2, INSTRUCTION_TRAP, 0, {0xcd, 0x80}},
    {"ud2", 2, INSTRUCTION_TRAP, 0, {0x0f, 0x0b}},
    {"hlt", 1, INSTRUCTION_TRAP, 0, {0xf4}},
    {"syscall", 2, INSTRUCTION_PRIVILEGED, 0, {0x0f, 0x05}},
    {"cli", 1, INSTRUCTION_PRIVILEGED, 0, {0xfa}},
    {"in", 1, INSTRUCTION_PRIVILEGED, 0, {0xec}},
    {"iretq", 2, INSTRUCTION_PRIVILEGED, 0, {0x48, 0xcf}},
    {"sub $8, %rsp", 4, INSTRUCTION_OTHER, 0, {0x48, 0x83, 0xec, 0x08}},
    {"mov %fs:0, %rax", 9, INSTRUCTION_OTHER, 0, {0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0}},
    {"vpcmpeqb", 4, INSTRUCTION_OTHER, 0, {0xc5, 0xf5, 0x74, 0xc0}},
};

static struct disasm *new_disasm(void)
{
    struct disasm *disasm = NULL;

    cr_assert_eq(disasm_new(&disasm, NULL), 0);
    return disasm;
}

Test(disasm, lengths_kinds_and_targets)
{
    AUTO_DISASM struct disasm *disasm = new_disasm();

    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct instruction got = {0};

        cr_assert_eq(disasm_decode(disasm, table[i].code, sizeof(table[i].code), AT, &got), 0, "%s",
                     table[i].text);
        cr_expect_eq(got.length, table[i].length, "%s: length %d", table[i].text, got.length);
        cr_expect_eq(got.kind, table[i].kind, "%s: kind %d", table[i].text, (int)got.kind);
        cr_expect_eq(got.target, table[i].target, "%s: target %lx", table[i].text, (long)got.target);
        cr_expect_eq(form_of(&got).vex, strcmp(table[i].text, "vpcmpeqb") == 0, "%s", table[i].text);
    }
}

Test(disasm, instructions_do_not_go_on_beyond_the_bytes)
{
    AUTO_DISASM struct disasm *disasm = new_disasm();
    struct instruction got = {.length = 99};

    for (size_t i = 0; i < ARRAY_SIZE(table); i++)
        cr_expect_eq(disasm_decode(disasm, table[i].code, table[i].length - 1u, AT, &got), -EILSEQ, "%s",
                     table[i].text);
    cr_expect_eq(got.length, 99, "an output was touched by a failure");
}

Test(disasm, prefixes_are_told)
{
    AUTO_DISASM struct disasm *disasm = new_disasm();
    static const uint8_t lock_inc[] = {0xf0, 0x48, 0xff, 0x07};
    static const uint8_t ds_lea[] = {0x3e, 0x8d, 0x04, 0x3f};
    static const uint8_t fs_mov[] = {0x64, 0x8b, 0x00};
    struct instruction got;

    cr_assert_eq(disasm_decode(disasm, lock_inc, sizeof(lock_inc), AT, &got), 0);
    cr_expect(got.locked && !form_of(&got).segment && form_of(&got).rex == 0x48);
    cr_assert_eq(disasm_decode(disasm, ds_lea, sizeof(ds_lea), AT, &got), 0);
    cr_expect(!got.locked && form_of(&got).segment && form_of(&got).rex == 0);
    cr_assert_eq(disasm_decode(disasm, fs_mov, sizeof(fs_mov), AT, &got), 0);
    cr_expect(!got.locked && !form_of(&got).segment && form_of(&got).opcode[0] == 0x8b);
}

Test(disasm, any_bytes_are_survived)
{
    AUTO_DISASM struct disasm *disasm = new_disasm();
    uint32_t state = 1;

    for (int round = 0; round < 200000; round++) {
        uint8_t code[16];
        struct instruction got;

        for (size_t i = 0; i < sizeof(code); i++) {
            state = state * 1664525u + 1013904223u;
            code[i] = (uint8_t)(state >> 24);
        }
        if (disasm_decode(disasm, code, (size_t)round % 17, AT, &got) == 0)
            cr_assert(got.length >= 1 && got.length <= round % 17);
    }
}
