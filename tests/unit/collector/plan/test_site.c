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

static struct sites choose(const void *code, size_t size)
{
    const struct image_function function = {.name = "f", .address = AT, .size = size};
    AUTO_FLOW_MAP struct flow_map *map = NULL;
    struct sites sites;

    cr_assert_eq(flow_map_new(&map), 0);
    cr_assert_eq(flow_map_add(map, code, size, AT), 0);
    cr_assert_eq(flow_map_walk(map, &function, 1, false), 0);
    memset(&sites, 0xff, sizeof(sites));
    site_choose(disasm, map, code, size, AT, &sites);
    return sites;
}

static void expect_one(const char *what, const struct site *got, uint64_t offset, uint32_t sp_offset,
                       enum site_class class)
{
    cr_expect_eq(got->class, class, "%s: %s, %s", what, site_class_text(got->class),
                 site_refusal_text(got->refusal));
    cr_expect_eq(got->offset, offset, "%s: at %lu", what, (unsigned long)got->offset);
    cr_expect_eq(got->sp_offset, sp_offset, "%s: sp %u", what, got->sp_offset);
    cr_expect_eq(got->refusal, SITE_OK, "%s", what);
}

/* Both answers are the same: a site with rsp unmoved that is as cheap as any. */
static void expect_site(const char *what, struct sites got, uint64_t offset, enum site_class class)
{
    expect_one(what, &got.unmoved, offset, 0, class);
    expect_one(what, &got.any, offset, 0, class);
}

/* An emulated site where rsp has moved; with rsp unmoved there is a dear one. */
static void expect_moved(const char *what, struct sites got, uint64_t offset, uint32_t sp_offset)
{
    expect_one(what, &got.any, offset, sp_offset, SITE_EMULATED);
    cr_expect_eq(got.unmoved.class, SITE_SINGLE_STEPPED, "%s", what);
}

static void expect_no_site(const char *what, struct sites got, enum site_refusal refusal)
{
    cr_expect_eq(got.unmoved.class, SITE_REFUSED, "%s", what);
    cr_expect_eq(got.unmoved.refusal, refusal, "%s: %s", what, site_refusal_text(got.unmoved.refusal));
    cr_expect_eq(got.any.class, SITE_REFUSED, "%s", what);
    cr_expect_eq(got.any.refusal, refusal, "%s: %s", what, site_refusal_text(got.any.refusal));
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
    expect_site("endbr64, mov: both are stepped", CHOOSE(ENDBR64, 0x89, 0xf8, 0xc3), 0, SITE_SINGLE_STEPPED);
    expect_site("nop5", CHOOSE(NOP5, 0x55, 0xc3), 5, SITE_EMULATED);
    expect_site("nop9", CHOOSE(NOP9, 0x55, 0xc3), 9, SITE_EMULATED);
    expect_site("nop10", CHOOSE(NOP10, 0x55, 0xc3), 10, SITE_EMULATED);
    expect_site("endbr64, nop5", CHOOSE(ENDBR64, NOP5, 0x55, 0xc3), 9, SITE_EMULATED);
    expect_site("nop5, endbr64", CHOOSE(NOP5, ENDBR64, 0x55, 0xc3), 9, SITE_EMULATED);
}

Test(site, falls_back_to_what_was_skipped)
{
    expect_site("endbr64, lock inc", CHOOSE(ENDBR64, 0xf0, 0x48, 0xff, 0x07, 0xc3), 0, SITE_SINGLE_STEPPED);
    /* a vector instruction is passed */
    expect_site("vzeroupper, ret", CHOOSE(0xc5, 0xf8, 0x77, 0xc3), 3, SITE_SINGLE_STEPPED);
    expect_site("nop5, endbr64, lock", CHOOSE(NOP5, ENDBR64, 0xf0, 0xff, 0x07), 5, SITE_SINGLE_STEPPED);
    /* a locked operation is passed where there is nothing before it, and cannot be probed itself */
    expect_site("nop5, lock inc, ret", CHOOSE(NOP5, 0xf0, 0x48, 0xff, 0x07, 0xc3), 9, SITE_SINGLE_STEPPED);
    expect_no_site("lock inc", CHOOSE(0xf0, 0x48, 0xff, 0x07), SITE_PREFIX);
}

Test(site, is_refused_with_a_reason)
{
    uint8_t padding[200];

    expect_no_site("nothing", choose("", 0), SITE_EMPTY);
    expect_no_site("data", CHOOSE(0x06, 0x06), SITE_UNDECODABLE);
    expect_no_site("half an instruction", CHOOSE(0x48, 0x8b), SITE_UNDECODABLE);
    expect_no_site("nop5, data", CHOOSE(NOP5, 0x06, 0x06), SITE_UNDECODABLE);
    expect_site("endbr64, unknown", CHOOSE(ENDBR64, 0x06, 0x06), 0, SITE_SINGLE_STEPPED);
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
    /* 0: endbr64; 4: dec %edi; 6: jne 4: only the endbr64 is passed once */
    expect_site("jne behind the endbr64", CHOOSE(ENDBR64, 0xff, 0xcf, 0x75, 0xfc, 0xc3), 0,
                SITE_SINGLE_STEPPED);
    /* 0: nop5; 5: dec %edi; 7: jne 5 */
    expect_no_site("jne behind what cannot be a site", CHOOSE(NOP5, 0xff, 0xcf, 0x75, 0xfc, 0xc3),
                   SITE_NO_ROOM);
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

#define SUB24 0x48, 0x83, 0xec, 0x18
#define MOV 0x48, 0x89, 0xf8
#define CALL_AWAY 0xe8, 0, 1, 0, 0

Test(site, lies_further_in_where_that_is_cheap)
{
    expect_site("mov, push", CHOOSE(MOV, 0x53, 0xc3), 3, SITE_EMULATED);
    expect_site("test, jne", CHOOSE(0x85, 0xff, 0x75, 0x01, 0x90, 0xc3), 2, SITE_EMULATED);
    expect_site("mov, tail call", CHOOSE(MOV, 0xe9, 0, 1, 0, 0), 3, SITE_EMULATED);
    expect_moved("sub, call", CHOOSE(SUB24, CALL_AWAY, 0xc3), 4, 24);
    expect_moved("sub, mov, je", CHOOSE(SUB24, MOV, 0x74, 0x01, 0x90, 0xc3), 7, 24);
    expect_moved("sub $128, call", CHOOSE(0x48, 0x83, 0xc4, 0x80, CALL_AWAY, 0xc3), 4, 128);
    expect_moved("sub $0x1000, call", CHOOSE(0x48, 0x81, 0xec, 0, 0x10, 0, 0, CALL_AWAY), 7, 0x1000);
    expect_moved("lea, call", CHOOSE(0x48, 0x8d, 0x64, 0x24, 0xf0, CALL_AWAY, 0xc3), 5, 16);
    expect_moved("push $1, call", CHOOSE(0x6a, 0x01, CALL_AWAY), 2, 8);
    expect_moved("push m, pop, push m, call",
                 CHOOSE(0xff, 0x37, 0x58, 0xff, 0x77, 0x08, 0x6a, 0x01, CALL_AWAY), 8, 16);
}

Test(site, is_not_sought_beyond)
{
    /* a branch to the call */
    expect_site("a target", CHOOSE(SUB24, CALL_AWAY, 0x75, 0xf9, 0xc3), 0, SITE_SINGLE_STEPPED);
    expect_site("lock", CHOOSE(MOV, 0xf0, 0x48, 0xff, 0x07, 0x55, 0xc3), 0, SITE_SINGLE_STEPPED);
    expect_site("rep stos", CHOOSE(MOV, 0xf3, 0x48, 0xab, 0x55, 0xc3), 0, SITE_SINGLE_STEPPED);
    expect_site("syscall", CHOOSE(MOV, 0x0f, 0x05, 0x55, 0xc3), 0, SITE_SINGLE_STEPPED);
    expect_site("call *%rax", CHOOSE(MOV, 0xff, 0xd0, 0x55, 0xc3), 0, SITE_SINGLE_STEPPED);
    expect_site("jmp *%rax", CHOOSE(MOV, 0xff, 0xe0, 0x55, 0xc3), 0, SITE_SINGLE_STEPPED);
    expect_site("ret", CHOOSE(MOV, 0xc3, 0x55, 0xc3), 0, SITE_SINGLE_STEPPED);
    expect_site("ud2", CHOOSE(MOV, 0x0f, 0x0b, 0x55), 0, SITE_SINGLE_STEPPED);
    expect_site("no instruction", CHOOSE(MOV, 0x06, 0x55), 0, SITE_SINGLE_STEPPED);
    expect_site("xbegin", CHOOSE(MOV, 0xc7, 0xf8, 0, 0, 0, 0, 0x55), 0, SITE_SINGLE_STEPPED);
    /* rsp may be anything behind these, or lies above the entry's, or is not a multiple of 8 */
    expect_site("mov %rax, %rsp", CHOOSE(MOV, 0x48, 0x89, 0xc4, CALL_AWAY), 0, SITE_SINGLE_STEPPED);
    expect_site("and $-32, %rsp", CHOOSE(MOV, 0x48, 0x83, 0xe4, 0xe0, CALL_AWAY), 0, SITE_SINGLE_STEPPED);
    expect_site("leave", CHOOSE(MOV, 0xc9, CALL_AWAY), 0, SITE_SINGLE_STEPPED);
    expect_site("pop", CHOOSE(MOV, 0x58, CALL_AWAY), 0, SITE_SINGLE_STEPPED);
    expect_site("sub $4", CHOOSE(MOV, 0x48, 0x83, 0xec, 0x04, CALL_AWAY), 0, SITE_SINGLE_STEPPED);
    expect_site("sub on esp", CHOOSE(MOV, 0x83, 0xec, 0x08, CALL_AWAY), 0, SITE_SINGLE_STEPPED);
    expect_site("a huge frame", CHOOSE(MOV, 0x48, 0x81, 0xec, 0, 0, 0x10, 0, CALL_AWAY), 0,
                SITE_SINGLE_STEPPED);
}

Test(site, is_not_sought_far)
{
    uint8_t code[150];

    for (size_t movs = 1; movs < 48; movs++) {
        struct sites got;

        memset(code, 0xcc, sizeof(code));
        for (size_t i = 0; i < movs; i++)
            memcpy(code + 3 * i, (const uint8_t[]){MOV}, 3);
        code[3 * movs] = 0x53;
        got = choose(code, sizeof(code));
        cr_expect_eq(got.any.class, movs <= 32 ? SITE_EMULATED : SITE_SINGLE_STEPPED, "%zu", movs);
        cr_expect_eq(got.any.offset, movs <= 32 ? 3 * movs : 0, "%zu", movs);
    }
}

/* cmp 16(%r14), %rsp; jbe more; push %rbp; mov; ret; more: mov %rax, 8(%rsp); call; mov 8(%rsp), %rax; jmp 0
 */
static const uint8_t stack_check[] = {0x49, 0x3b, 0x66, 0x10,      0x76, 0x05, 0x55, MOV,  0xc3, 0x48, 0x89,
                                      0x44, 0x24, 0x08, CALL_AWAY, 0x48, 0x8b, 0x44, 0x24, 0x08, 0xeb, 0xe4};

Test(site, lies_behind_a_check_for_room_on_the_stack)
{
    uint8_t code[sizeof(stack_check)];

    cr_assert_eq(stack_check[sizeof(stack_check) - 1], (uint8_t) - sizeof(stack_check));
    expect_site("push behind jbe", choose(stack_check, sizeof(stack_check)), 6, SITE_EMULATED);
    memcpy(code, stack_check, sizeof(code));
    memset(code + 16, 0x90, 5);
    expect_no_site("nothing is called", choose(code, sizeof(code)), SITE_LOOP);
    memcpy(code, stack_check, sizeof(code));
    code[sizeof(code) - 1] += 4;
    expect_site("it continues elsewhere", choose(code, sizeof(code)), 0, SITE_SINGLE_STEPPED);
    memcpy(code, stack_check, sizeof(code));
    memcpy(code + 7, (const uint8_t[]){0x75, 0xf7}, 2);
    expect_no_site("there is another way back", choose(code, sizeof(code)), SITE_LOOP);
}

Test(site, behind_two_checks)
{
    /* mov %rsp, %r12; sub $N, %r12; jb more; cmp 16(%r14), %r12; jbe more; sub $24, %rsp; call; ret; more:
     * call; jmp 0 */
    expect_moved("a large frame",
                 CHOOSE(0x49, 0x89, 0xe4, 0x49, 0x81, 0xec, 0, 0, 1, 0, 0x72, 0x10, 0x4d, 0x3b, 0x66, 0x10,
                        0x76, 0x0a, SUB24, CALL_AWAY, 0xc3, CALL_AWAY, 0xeb, 0xdd),
                 22, 24);
}

Test(site, any_bytes_get_an_answer)
{
    uint32_t state = 7;

    for (int round = 0; round < 50000; round++) {
        uint8_t code[48];
        struct sites got;

        for (size_t i = 0; i < sizeof(code); i++) {
            state = state * 1664525u + 1013904223u;
            code[i] = (uint8_t)(state >> 24);
        }
        got = choose(code, (size_t)round % (sizeof(code) + 1));
        for (int i = 0; i < 2; i++) {
            const struct site *site = i ? &got.any : &got.unmoved;

            cr_assert_eq(site->class == SITE_REFUSED, site->refusal != SITE_OK);
            cr_assert(site->class == SITE_REFUSED || site->offset < (size_t)round % (sizeof(code) + 1));
            cr_assert_eq(site->sp_offset % 8, 0);
        }
        cr_assert_eq(got.unmoved.sp_offset, 0);
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
