/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The forms whose price was measured, those that the kernel refuses, and where a site is found behind them.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "base/array.h"
#include "collector/plan/site.h"

#define AT 0x401000u

struct form {
    const char *text;
    enum site_class class;
    enum site_refusal refusal;
    uint8_t length;
    uint8_t code[15];
};

#define EMULATED SITE_EMULATED, SITE_OK
#define STEPPED SITE_SINGLE_STEPPED, SITE_OK
#define REFUSED(reason) SITE_REFUSED, reason

static const struct form forms[] = {
    {"nop", EMULATED, 1, {0x90}},
    {"nop2", EMULATED, 2, {0x66, 0x90}},
    {"nop3", EMULATED, 3, {0x0f, 0x1f, 0x00}},
    {"nop4", EMULATED, 4, {0x0f, 0x1f, 0x40, 0x00}},
    {"nop5", REFUSED(SITE_OPCODE), 5, {0x0f, 0x1f, 0x44, 0x00, 0x00}},
    {"nop5 of another operand", REFUSED(SITE_OPCODE), 5, {0x0f, 0x1f, 0x44, 0x00, 0x08}},
    {"nop5 of prefixes", REFUSED(SITE_OPCODE), 5, {0x66, 0x66, 0x66, 0x66, 0x90}},
    {"nop6", EMULATED, 6, {0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00}},
    {"nop7", EMULATED, 7, {0x0f, 0x1f, 0x80, 0, 0, 0, 0}},
    {"nop8", EMULATED, 8, {0x0f, 0x1f, 0x84, 0x00, 0, 0, 0, 0}},
    {"nop9", STEPPED, 9, {0x66, 0x0f, 0x1f, 0x84, 0x00, 0, 0, 0, 0}},
    {"nop10", REFUSED(SITE_PREFIX), 10, {0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0, 0, 0, 0}},
    {"push %rbp", EMULATED, 1, {0x55}},
    {"push %rsp", EMULATED, 1, {0x54}},
    {"push %r12", EMULATED, 2, {0x41, 0x54}},
    {"push %r15", EMULATED, 2, {0x41, 0x57}},
    {"rex.w push", STEPPED, 2, {0x48, 0x55}},
    {"push %bp", STEPPED, 2, {0x66, 0x55}},
    {"call rel32", EMULATED, 5, {0xe8, 1, 2, 3, 4}},
    {"jmp rel8", EMULATED, 2, {0xeb, 0x10}},
    {"jmp rel32", EMULATED, 5, {0xe9, 0, 1, 0, 0}},
    {"bnd jmp rel32", EMULATED, 6, {0xf2, 0xe9, 0, 1, 0, 0}},
    {"je rel8", EMULATED, 2, {0x74, 0x10}},
    {"jg rel32", EMULATED, 6, {0x0f, 0x8f, 0, 1, 0, 0}},
    {"loop", STEPPED, 2, {0xe2, 0x10}},
    {"endbr64", STEPPED, 4, {0xf3, 0x0f, 0x1e, 0xfa}},
    {"ret", STEPPED, 1, {0xc3}},
    {"sub $24, %rsp", STEPPED, 4, {0x48, 0x83, 0xec, 0x18}},
    {"mov %rdi, %rax", STEPPED, 3, {0x48, 0x89, 0xf8}},
    {"mov 8(%rip), %rax", STEPPED, 7, {0x48, 0x8b, 0x05, 8, 0, 0, 0}},
    {"lea", STEPPED, 4, {0x48, 0x8d, 0x04, 0x37}},
    {"xor %eax, %eax", STEPPED, 2, {0x31, 0xc0}},
    {"test %edi, %edi", STEPPED, 2, {0x85, 0xff}},
    {"push $1", STEPPED, 2, {0x6a, 0x01}},
    {"jmp *8(%rip)", STEPPED, 6, {0xff, 0x25, 8, 0, 0, 0}},
    {"call *%rax", STEPPED, 2, {0xff, 0xd0}},
    {"mov %fs:0, %rax", STEPPED, 9, {0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0}},
    {"movaps", STEPPED, 3, {0x0f, 0x28, 0xc1}},
    {"pcmpeqb", STEPPED, 4, {0x66, 0x0f, 0x74, 0xc1}},
    {"pause", STEPPED, 2, {0xf3, 0x90}},
    {"lock inc", REFUSED(SITE_PREFIX), 4, {0xf0, 0x48, 0xff, 0x07}},
    {"ds lea", REFUSED(SITE_PREFIX), 4, {0x3e, 0x8d, 0x04, 0x3f}},
    {"notrack jmp *%rax", REFUSED(SITE_PREFIX), 3, {0x3e, 0xff, 0xe0}},
    {"data16 je", REFUSED(SITE_PREFIX), 3, {0x66, 0x74, 0x10}},
    {"int3", REFUSED(SITE_TRAP), 1, {0xcc}},
    {"int 0x80", REFUSED(SITE_TRAP), 2, {0xcd, 0x80}},
    {"int1", REFUSED(SITE_TRAP), 1, {0xf1}},
    {"ud2", REFUSED(SITE_TRAP), 2, {0x0f, 0x0b}},
    {"hlt", REFUSED(SITE_TRAP), 1, {0xf4}},
    {"in", REFUSED(SITE_PRIVILEGED), 2, {0xe4, 0x10}},
    {"out", REFUSED(SITE_PRIVILEGED), 1, {0xee}},
    {"outs", REFUSED(SITE_PRIVILEGED), 1, {0x6e}},
    {"iretq", REFUSED(SITE_PRIVILEGED), 2, {0x48, 0xcf}},
    {"cli", REFUSED(SITE_PRIVILEGED), 1, {0xfa}},
    {"sti", REFUSED(SITE_PRIVILEGED), 1, {0xfb}},
    {"syscall", REFUSED(SITE_PRIVILEGED), 2, {0x0f, 0x05}},
    {"xgetbv", REFUSED(SITE_PRIVILEGED), 3, {0x0f, 0x01, 0xd0}},
    {"pushf", REFUSED(SITE_OPCODE), 1, {0x9c}},
    {"popf", REFUSED(SITE_OPCODE), 1, {0x9d}},
    {"xchg %r8, %rax", REFUSED(SITE_OPCODE), 2, {0x49, 0x90}},
    {"mov %eax, %ss", REFUSED(SITE_OPCODE), 2, {0x8e, 0xd0}},
    {"lcall *(%rax)", REFUSED(SITE_OPCODE), 2, {0xff, 0x18}},
    {"xbegin", REFUSED(SITE_OPCODE), 6, {0xc7, 0xf8, 0, 0, 0, 0}},
    {"vpcmpeqb, which looks like je", REFUSED(SITE_OPCODE), 4, {0xc5, 0xf5, 0x74, 0xc0}},
    {"vpsubsb, which looks like call", REFUSED(SITE_OPCODE), 4, {0xc5, 0xf5, 0xe8, 0xc0}},
    {"vzeroupper, which looks like ja", REFUSED(SITE_OPCODE), 3, {0xc5, 0xf8, 0x77}},
};

static struct disasm *disasm;

static void start(void)
{
    cr_assert_eq(disasm_new(&disasm, NULL), 0);
}

static void stop(void)
{
    disasm_free(disasm);
}

TestSuite(site, .init = start, .fini = stop);

Test(site, every_form_has_its_class)
{
    for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
        const struct form *form = &forms[i];
        struct instruction instruction;
        enum site_refusal refusal = SITE_REFUSALS;

        cr_assert_eq(disasm_decode(disasm, form->code, sizeof(form->code), AT, &instruction), 0, "%s",
                     form->text);
        cr_expect_eq(instruction.length, form->length, "%s", form->text);
        cr_expect_eq(site_classify(&instruction, &refusal), form->class, "%s", form->text);
        cr_expect_eq(refusal, form->refusal, "%s: %s", form->text, site_refusal_text(refusal));
    }
}

static struct site choose(const void *code, size_t size)
{
    struct site site = {.offset = 99};

    site_choose(disasm, code, size, AT, &site);
    return site;
}

static void expect_site(const char *what, struct site got, uint64_t offset, enum site_class class)
{
    cr_expect_eq(got.class, class, "%s: %s, %s", what, site_class_text(got.class),
                 site_refusal_text(got.refusal));
    cr_expect_eq(got.offset, offset, "%s: at %lu", what, (unsigned long)got.offset);
    cr_expect_eq(got.refusal, SITE_OK, "%s", what);
}

static void expect_no_site(const char *what, struct site got, enum site_refusal refusal)
{
    cr_expect_eq(got.class, SITE_REFUSED, "%s", what);
    cr_expect_eq(got.refusal, refusal, "%s: %s", what, site_refusal_text(got.refusal));
}

#define CHOOSE(...) choose((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))
#define ENDBR64 0xf3, 0x0f, 0x1e, 0xfa
#define NOP5 0x0f, 0x1f, 0x44, 0x00, 0x00
#define NOP9 0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00
#define NOP10 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00

Test(site, is_the_entry_where_nothing_is_to_be_skipped)
{
    expect_site("push", CHOOSE(0x55, 0xc3), 0, SITE_EMULATED);
    expect_site("nop", CHOOSE(0x90, 0x90, 0x90, 0x90, 0x90, 0xc3), 0, SITE_EMULATED);
    expect_site("mov", CHOOSE(0x48, 0x89, 0xf8, 0xc3), 0, SITE_SINGLE_STEPPED);
    expect_site("ret", CHOOSE(0xc3), 0, SITE_SINGLE_STEPPED);
}

Test(site, lies_behind_endbr64_and_bad_nops)
{
    expect_site("endbr64", CHOOSE(ENDBR64, 0x55, 0xc3), 4, SITE_EMULATED);
    expect_site("endbr64, mov", CHOOSE(ENDBR64, 0x89, 0xf8, 0xc3), 4, SITE_SINGLE_STEPPED);
    expect_site("nop5", CHOOSE(NOP5, 0x55, 0xc3), 5, SITE_EMULATED);
    expect_site("nop9", CHOOSE(NOP9, 0x55, 0xc3), 9, SITE_EMULATED);
    expect_site("nop10", CHOOSE(NOP10, 0x55, 0xc3), 10, SITE_EMULATED);
    expect_site("endbr64, nop5", CHOOSE(ENDBR64, NOP5, 0x55, 0xc3), 9, SITE_EMULATED);
    expect_site("nop5, endbr64", CHOOSE(NOP5, ENDBR64, 0x55, 0xc3), 9, SITE_EMULATED);
}

Test(site, falls_back_to_what_was_skipped)
{
    expect_site("endbr64, lock inc", CHOOSE(ENDBR64, 0xf0, 0x48, 0xff, 0x07, 0xc3), 0, SITE_SINGLE_STEPPED);
    expect_site("nop5, endbr64, lock", CHOOSE(NOP5, ENDBR64, 0xf0, 0xff, 0x07), 5, SITE_SINGLE_STEPPED);
    expect_no_site("nop5, lock inc", CHOOSE(NOP5, 0xf0, 0x48, 0xff, 0x07, 0xc3), SITE_PREFIX);
}

Test(site, is_refused_with_a_reason)
{
    uint8_t padding[200];

    expect_no_site("nothing", choose("", 0), SITE_EMPTY);
    expect_no_site("data", CHOOSE(0x06, 0x06), SITE_UNDECODABLE);
    expect_no_site("half an instruction", CHOOSE(0x48, 0x8b), SITE_UNDECODABLE);
    expect_no_site("endbr64, data", CHOOSE(ENDBR64, 0x06, 0x06), SITE_UNDECODABLE);
    expect_no_site("nop5 only", CHOOSE(NOP5), SITE_NO_ROOM);
    expect_no_site("ud2", CHOOSE(0x0f, 0x0b), SITE_TRAP);
    for (size_t i = 0; i < sizeof(padding); i += 5)
        memcpy(padding + i, (const uint8_t[]){NOP5}, 5);
    expect_no_site("padding", choose(padding, sizeof(padding)), SITE_NO_ROOM);
}

Test(site, is_refused_where_a_branch_leads_back_to_it)
{
    uint8_t far[300];
    int32_t distance = -(int32_t)(sizeof(far));

    /* 0: dec %edi; 2: jne 0; 4: ret */
    expect_no_site("jne short", CHOOSE(0xff, 0xcf, 0x75, 0xfc, 0xc3), SITE_LOOP);
    /* 0: endbr64; 4: dec %edi; 6: jne 4 */
    expect_no_site("jne to the site", CHOOSE(ENDBR64, 0xff, 0xcf, 0x75, 0xfc, 0xc3), SITE_LOOP);
    /* 0: push; 1: dec %edi; 3: jne 1: the loop lies behind the site */
    expect_site("jne behind the site", CHOOSE(0x55, 0xff, 0xcf, 0x75, 0xfc, 0xc3), 0, SITE_EMULATED);
    /* 0: jmp 0 */
    expect_no_site("jmp to itself", CHOOSE(0xeb, 0xfe), SITE_LOOP);
    memset(far, 0x90, sizeof(far));
    far[294] = 0x0f;
    far[295] = 0x85;
    memcpy(far + 296, &distance, 4);
    expect_no_site("jne near", choose(far, sizeof(far)), SITE_LOOP);
    far[294] = 0x90;
    far[295] = 0xe9;
    expect_no_site("jmp near", choose(far, sizeof(far)), SITE_LOOP);
    far[295] = 0xe8;
    expect_site("call, which is recursion", choose(far, sizeof(far)), 0, SITE_EMULATED);
}

Test(site, bytes_inside_instructions_are_no_branches)
{
    /* mov (%rdi), %ecx; cmp $0x7fffffff, %ecx; ret: bytes 1 to 6 read as jno to the entry */
    expect_site("operands", CHOOSE(0x8b, 0x0f, 0x81, 0xf9, 0xff, 0xff, 0xff, 0x7f, 0xc3), 0,
                SITE_SINGLE_STEPPED);
    /* push; mov $0xfceb, %eax: bytes 2 and 3 read as jmp to the entry */
    expect_site("an immediate", CHOOSE(0x55, 0xb8, 0xeb, 0xfc, 0, 0, 0xc3), 0, SITE_EMULATED);
}

Test(site, any_bytes_get_an_answer)
{
    uint32_t state = 7;

    for (int round = 0; round < 50000; round++) {
        uint8_t code[48];
        struct site site;

        for (size_t i = 0; i < sizeof(code); i++) {
            state = state * 1664525u + 1013904223u;
            code[i] = (uint8_t)(state >> 24);
        }
        site = choose(code, (size_t)round % (sizeof(code) + 1));
        cr_assert_eq(site.class == SITE_REFUSED, site.refusal != SITE_OK);
        if (site.class != SITE_REFUSED)
            cr_assert_lt(site.offset, round % (sizeof(code) + 1));
    }
}

Test(site, every_reason_has_words)
{
    for (int i = 0; i < SITE_REFUSALS; i++)
        cr_expect_str_neq(site_refusal_text((enum site_refusal)i), "unknown");
    for (int i = 0; i < SITE_CLASSES; i++)
        cr_expect_str_neq(site_class_text((enum site_class)i), "unknown");
    cr_expect_str_eq(site_refusal_text(SITE_REFUSALS), "unknown");
}
