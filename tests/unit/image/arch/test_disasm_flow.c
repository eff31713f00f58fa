/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The fast decoder against Capstone, what instructions do to rsp, and the map of an image's code. */
#include <capstone/capstone.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <link.h>
#include <string.h>

#include "base/array.h"
#include "image/arch/disasm.h"
#include "image/arch/operands.h"
#include "image/arch/stack_effect.h"
#include "image/arch/x86_64/flow_length.h"
#include "image/flow/flow_image.h"
#include "tests/unit/image/tiny_elf.h"

#define AT 0x1000u

/* Of one segment, instructions on which Capstone and the tables agree, and those that only the tables know.
 */
struct tally {
    size_t same, unknown;
};

static void compare_code(const uint8_t *code, size_t size, struct tally *tally)
{
    AUTO_DISASM struct disasm *disasm = NULL;
    struct instruction slow, fast;

    cr_assert_eq(disasm_new(&disasm, NULL), 0);
    for (size_t at = 0; at < size; at += fast.length) {
        int r = disasm_decode(disasm, code + at, size - at, AT + at, &slow);

        if (disasm_skim(code + at, size - at, AT + at, &fast) < 0)
            fast.length = 1;
        else if (r < 0)
            tally->unknown++;
        else if (slow.length == fast.length && slow.kind == fast.kind && slow.target == fast.target)
            tally->same++;
        else
            cr_expect_fail("%d, not %d bytes: %02x %02x %02x %02x", fast.length, slow.length, code[at],
                           code[at + 1], code[at + 2], code[at + 3]);
    }
}

static int compare_loaded(struct dl_phdr_info *info, size_t size, void *tally)
{
    if (*info->dlpi_name && !strstr(info->dlpi_name, "/libc.so") && !strstr(info->dlpi_name, "/libcriterion"))
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X)
            compare_code((const uint8_t *)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr,
                         info->dlpi_phdr[i].p_filesz, tally);
    return 0;
}

Test(flow_length, capstone_agrees_on_what_it_knows)
{
    struct tally tally = {0};

    dl_iterate_phdr(compare_loaded, &tally);
    cr_expect_gt(tally.same, 100000);
    cr_expect_lt(tally.unknown, tally.same / 50, "%zu of %zu", tally.unknown, tally.same);
}

Test(flow_length, forms_that_programs_here_may_lack)
{
    static const struct {
        const char *text;
        int length;
        uint8_t code[15];
    } forms[] = {
        {"movabs", 10, {0x48, 0xb8}},
        {"mov $imm32", 5, {0xb8}},
        {"mov $imm16", 4, {0x66, 0xb8}},
        {"mov from an absolute address", 10, {0x48, 0xa1}},
        {"from one of 32 bits", 7, {0x67, 0x48, 0xa1}},
        {"enter", 4, {0xc8}},
        {"test $imm8 of group 3", 3, {0xf6, 0xc0}},
        {"not", 2, {0xf6, 0xd0}},
        {"test $imm32 of group 3", 7, {0x48, 0xf7, 0xc0}},
        {"SIB and displacement", 7, {0x8b, 0x84, 0x24}},
        {"SIB without base", 7, {0x8b, 0x04, 0x25}},
        {"rip-relative, with an immediate", 7, {0x80, 0x3d}},
        {"EVEX", 6, {0x62, 0xf1, 0x7c, 0x48, 0x28, 0xc1}},
        {"VEX with an immediate", 6, {0xc4, 0xe3, 0x7d, 0x39, 0xc1}},
        {"XOP", 5, {0x8f, 0xe9, 0x78, 0x9b, 0xc1}},
        {"3DNow!", 4, {0x0f, 0x0f, 0xc1, 0xb4}},
        {"mov %cr0, whose operands are registers", 3, {0x0f, 0x20, 0x05}},
        {"data16 rex.w call", 7, {0x66, 0x48, 0xe8}},
        {"data16 call", -EILSEQ, {0x66, 0xe8}},
        {"push %es", -EILSEQ, {0x06}},
        {"fifteen prefixes",
         -EILSEQ,
         {0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66}},
    };

    for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
        cr_expect_eq(flow_length(forms[i].code, 15), forms[i].length, "%s", forms[i].text);
        for (int size = 0; size < forms[i].length; size++)
            cr_expect_eq(flow_length(forms[i].code, (size_t)size), -EILSEQ, "%s in %d", forms[i].text, size);
    }
}

/* ---------------------------------------------------------------------------------------------- rsp */

Test(stack_effect, effects)
{
    static const struct {
        const char *text;
        enum stack_effect effect;
        int bytes;
        uint8_t code[15];
    } table[] = {
        {"push %rbp", STACK_MOVED, -8, {0x55}},
        {"push %r12", STACK_MOVED, -8, {0x41, 0x54}},
        {"push $1", STACK_MOVED, -8, {0x6a, 0x01}},
        {"push (%rdi)", STACK_MOVED, -8, {0xff, 0x37}},
        {"push %bp", STACK_LOST, 0, {0x66, 0x55}},
        {"pop %rbp", STACK_MOVED, 8, {0x5d}},
        {"pop %rsp", STACK_LOST, 0, {0x5c}},
        {"pop %r12", STACK_MOVED, 8, {0x41, 0x5c}},
        {"pop (%rdi)", STACK_MOVED, 8, {0x8f, 0x07}},
        {"sub $8, %rsp", STACK_MOVED, -8, {0x48, 0x83, 0xec, 0x08}},
        {"sub $-128, %rsp", STACK_MOVED, 128, {0x48, 0x83, 0xec, 0x80}},
        {"add $4096, %rsp", STACK_MOVED, 4096, {0x48, 0x81, 0xc4, 0, 0x10}},
        {"sub $8, %r12", STACK_KEPT, 0, {0x49, 0x83, 0xec, 0x08}},
        {"cmp $8, %rsp", STACK_KEPT, 0, {0x48, 0x83, 0xfc, 0x08}},
        {"sub $8, %esp", STACK_LOST, 0, {0x83, 0xec, 0x08}},
        {"sub %rax, %rsp", STACK_LOST, 0, {0x48, 0x29, 0xc4}},
        {"and $-16, %rsp", STACK_LOST, 0, {0x48, 0x83, 0xe4, 0xf0}},
        {"lea 16(%rsp), %rsp", STACK_MOVED, 16, {0x48, 0x8d, 0x64, 0x24, 0x10}},
        {"lea -8(%rbp), %rsp", STACK_LOST, 0, {0x48, 0x8d, 0x65, 0xf8}},
        {"lea (%rsp, %rax), %rsp", STACK_LOST, 0, {0x48, 0x8d, 0x24, 0x04}},
        {"lea 16(%rsp), %rax", STACK_KEPT, 0, {0x48, 0x8d, 0x44, 0x24, 0x10}},
        {"mov %rsp, %rbp", STACK_KEPT, 0, {0x48, 0x89, 0xe5}},
        {"mov %rbp, %rsp", STACK_LOST, 0, {0x48, 0x89, 0xec}},
        {"mov (%rdi), %rsp", STACK_LOST, 0, {0x48, 0x8b, 0x27}},
        {"mov (%rsp), %rdi", STACK_KEPT, 0, {0x48, 0x8b, 0x3c, 0x24}},
        {"xchg %rax, %rsp", STACK_LOST, 0, {0x48, 0x94}},
        {"xchg %rsp, (%rdi)", STACK_LOST, 0, {0x48, 0x87, 0x27}},
        {"mov $1, %esp", STACK_LOST, 0, {0xbc, 0x01}},
        {"leave", STACK_LOST, 0, {0xc9}},
        {"enter", STACK_LOST, 0, {0xc8}},
        {"cmove %rax, %rsp", STACK_LOST, 0, {0x48, 0x0f, 0x44, 0xe0}},
        {"movups %xmm4, (%rax)", STACK_KEPT, 0, {0x0f, 0x11, 0x20}},
        {"movaps %xmm4, %xmm4", STACK_KEPT, 0, {0x0f, 0x28, 0xe4}},
        {"push %fs", STACK_MOVED, -8, {0x0f, 0xa0}},
        {"call", STACK_KEPT, 0, {0xe8}},
        {"vzeroupper", STACK_KEPT, 0, {0xc5, 0xf8, 0x77}},
    };

    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct instruction instruction;
        int64_t bytes = 99;

        cr_assert_eq(disasm_skim(table[i].code, 15, AT, &instruction), 0, "%s", table[i].text);
        cr_expect_eq(instruction_stack_effect(&instruction, &bytes), table[i].effect, "%s", table[i].text);
        cr_expect_eq(bytes, table[i].bytes, "%s: %ld", table[i].text, bytes);
    }
}

/* What Capstone knows to write rsp must not be taken to keep it. */
static void compare_effects(const uint8_t *code, size_t size, size_t *moves)
{
    uint64_t address = AT;
    cs_insn *insn;
    csh handle;

    cr_assert_eq(cs_open(CS_ARCH_X86, CS_MODE_64, &handle), CS_ERR_OK);
    cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON);
    insn = cs_malloc(handle);
    while (size > 0) {
        struct instruction instruction;
        uint8_t read_count, written_count;
        const uint8_t *start = code;
        cs_regs read, written;
        int64_t bytes;

        if (!cs_disasm_iter(handle, &code, &size, &address, insn)) {
            code++;
            size--;
            continue;
        }
        if (cs_insn_group(handle, insn, CS_GRP_CALL) ||
            disasm_skim(start, insn->size, AT, &instruction) < 0 ||
            cs_regs_access(handle, insn, read, &read_count, written, &written_count) != CS_ERR_OK)
            continue;
        for (int i = 0; i < written_count; i++) {
            if (written[i] != X86_REG_RSP && written[i] != X86_REG_ESP && written[i] != X86_REG_SP &&
                written[i] != X86_REG_SPL)
                continue;
            ++*moves;
            cr_expect_neq(instruction_stack_effect(&instruction, &bytes), STACK_KEPT, "%s %s", insn->mnemonic,
                          insn->op_str);
        }
    }
    cs_free(insn, 1);
    cs_close(&handle);
}

static int compare_libc(struct dl_phdr_info *info, size_t size, void *moves)
{
    for (int i = 0; strstr(info->dlpi_name, "/libc.so") && i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X)
            compare_effects((const uint8_t *)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr,
                            info->dlpi_phdr[i].p_filesz, moves);
    return 0;
}

Test(stack_effect, no_writer_of_rsp_is_missed)
{
    size_t moves = 0;

    dl_iterate_phdr(compare_libc, &moves);
    cr_expect_gt(moves, 10000);
}

Test(operands, memory)
{
    static const struct {
        const char *text;
        struct memory_operand memory;
        uint8_t code[15];
    } table[] = {
        {"(%rsp)", {REGISTER_STACK, REGISTER_NONE, 1, 0}, {0x48, 0x8b, 0x04, 0x24}},
        {"-8(%rbp)", {REGISTER_FRAME, REGISTER_NONE, 1, -8}, {0x48, 0x8b, 0x45, 0xf8}},
        {"16(%r14)", {14, REGISTER_NONE, 1, 16}, {0x49, 0x3b, 0x66, 0x10}},
        {"256(%rip)", {REGISTER_PC, REGISTER_NONE, 1, 256}, {0x48, 0x8d, 0x05, 0, 1, 0, 0}},
        {"8(%rsp, %r12, 4)", {REGISTER_STACK, 12, 4, 8}, {0x4a, 0x8b, 0x44, 0xa4, 0x08}},
        {"512(, %rax, 8)", {REGISTER_NONE, 0, 8, 512}, {0xff, 0x24, 0xc5, 0, 2, 0, 0}},
        {"(%r12)", {12, REGISTER_NONE, 1, 0}, {0x49, 0x8b, 0x04, 0x24}},
    };
    static const uint8_t none[][15] = {{0x48, 0x89, 0xe5}, {0x55}, {0xc5, 0xf8, 0x77}, {0xe8}};
    struct instruction instruction;
    struct memory_operand memory;

    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        cr_assert_eq(disasm_skim(table[i].code, 15, AT, &instruction), 0, "%s", table[i].text);
        cr_assert(instruction_memory(&instruction, &memory), "%s", table[i].text);
        cr_expect(memory.base == table[i].memory.base && memory.index == table[i].memory.index &&
                      memory.scale == table[i].memory.scale &&
                      memory.displacement == table[i].memory.displacement,
                  "%s", table[i].text);
    }
    for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
        cr_assert_eq(disasm_skim(none[i], 15, AT, &instruction), 0);
        cr_expect_not(instruction_memory(&instruction, &memory), "%zu", i);
    }
}

/* ---------------------------------------------------------------------------------------------- the map */

/* 0: je 4; 2: jmp g; 4: lea h, %rax; 11: ret   f.cold, 12: jmp f; 14: jmp 4   g, 16: mov   h, 19: call 4; 24:
 * ret */
static const uint8_t code[] = {0x74, 0x02, 0xeb, 0x0c, 0x48, 0x8d, 0x05, 8,    0,    0,    0,    0xc3, 0xeb,
                               0xf2, 0xeb, 0xf4, 0x48, 0x89, 0xf8, 0xe8, 0xec, 0xff, 0xff, 0xff, 0xc3};
static const struct image_function functions[] = {
    {.name = "f", .address = AT, .size = 12},
    {.name = "f.cold", .address = AT + 12, .size = 4, .flags = IMAGE_FUNCTION_FRAGMENT},
    {.name = "g", .address = AT + 16, .size = 3},
    {.name = "h", .address = AT + 19, .size = 6},
};

static struct flow_map *new_map(void)
{
    struct flow_map *map;

    cr_assert_eq(flow_map_new(&map), 0);
    cr_assert_eq(flow_map_add(map, code, sizeof(code), AT), 0);
    cr_assert_eq(flow_map_walk(map, functions, ARRAY_SIZE(functions), false), 0);
    return map;
}

Test(flow_map, starts_and_targets)
{
    AUTO_FLOW_MAP struct flow_map *map = new_map();
    static const uint8_t starts[] = {0, 2, 4, 11, 12, 14, 16, 19, 24}, targets[] = {0, 4, 16, 19};

    for (size_t at = 0; at < sizeof(code); at++) {
        cr_expect_eq(flow_map_has(map, AT + at, FLOW_START), memchr(starts, (int)at, sizeof(starts)) != NULL,
                     "%zu", at);
        cr_expect_eq(flow_map_has(map, AT + at, FLOW_TARGET),
                     memchr(targets, (int)at, sizeof(targets)) != NULL, "%zu", at);
        cr_expect_eq(flow_map_has(map, AT + at, FLOW_TAKEN), at == 19, "%zu", at);
    }
    cr_expect_not(flow_map_has(map, AT - 1, FLOW_START));
    cr_expect_not(flow_map_has(map, AT + sizeof(code), FLOW_START));
    flow_map_take(map, AT + sizeof(code));
    flow_map_set(map, 0, FLOW_TARGET);
}

Test(flow_map, edges)
{
    AUTO_FLOW_MAP struct flow_map *map = new_map();
    static const struct flow_edge expected[] = {
        {AT + 12, AT, FLOW_EDGE_JUMP}, {AT + 2, AT + 16, FLOW_EDGE_JUMP}, {AT + 18, AT + 19, FLOW_EDGE_FALL}};
    size_t count;
    const struct flow_edge *edges = flow_map_edges_to(map, 0, UINT64_MAX, &count);

    cr_assert_eq(count, ARRAY_SIZE(expected));
    for (size_t i = 0; i < count; i++) {
        cr_expect_eq(edges[i].from, expected[i].from, "%zu", i);
        cr_expect_eq(edges[i].to, expected[i].to, "%zu", i);
        cr_expect_eq(edges[i].kind, expected[i].kind, "%zu", i);
    }
    flow_map_edges_to(map, AT + 1, AT + 15, &count);
    cr_expect_eq(count, 0);
}

Test(flow_map, a_fragment_belongs_to_who_jumps_into_it)
{
    static const uint8_t jumps[] = {0x74, 0x02, 0xeb, 0xfc, 0xeb, 0xfa, 0x90, 0xeb, 0xf7};
    const struct image_function three[] = {
        {.name = "f", .address = AT, .size = 4},
        {.name = "f.cold", .address = AT + 4, .size = 3, .flags = IMAGE_FUNCTION_FRAGMENT},
        {.name = "g", .address = AT + 7, .size = 2},
    };
    AUTO_FLOW_MAP struct flow_map *map = NULL;

    cr_assert_eq(flow_map_new(&map), 0);
    cr_assert_eq(flow_map_add(map, jumps, sizeof(jumps), AT), 0);
    cr_assert_eq(flow_map_walk(map, three, ARRAY_SIZE(three), false), 0);
    cr_expect(flow_map_is_inside(map, AT, AT + 2));
    cr_expect(flow_map_is_inside(map, AT, AT + 4));
    cr_expect_not(flow_map_is_inside(map, AT, AT + 7));
    cr_expect_not(flow_map_is_inside(map, AT + 7, AT + 4));
    cr_expect_not(flow_map_is_inside(map, AT + 1, AT + 2), "nothing begins there");
}

Test(flow_map, addresses_as_immediates)
{
    static const uint8_t mov[] = {0xb8, 0x05, 0x10, 0, 0, 0xc3};

    for (int absolute = 0; absolute < 2; absolute++) {
        AUTO_FLOW_MAP struct flow_map *map = NULL;

        cr_assert_eq(flow_map_new(&map), 0);
        cr_assert_eq(flow_map_add(map, mov, sizeof(mov), AT), 0);
        cr_assert_eq(flow_map_walk(map, NULL, 0, absolute), 0);
        cr_expect_eq(flow_map_has(map, AT + 5, FLOW_TAKEN), absolute);
    }
}

/* ---------------------------------------------------------------------------------------------- images */

Test(flow_image, jump_tables_are_followed)
{
    /* 0: lea 21, %rcx; 7: movslq (%rcx, %rdi, 4), %rax; 11: add %rcx, %rax; 14: jmp *%rax; 16: mov; 19: nop;
     * 20: ret 21: the distances from 21 to 16, 20, and into the middle of the mov, where the table must end
     */
    static const uint8_t text[] = {0x48, 0x8d, 0x0d, 14,   0,    0,    0,    0x48, 0x63, 0x04,
                                   0xb9, 0x48, 0x01, 0xc8, 0xff, 0xe0, 0x48, 0x89, 0xf8, 0x90,
                                   0xc3, 0xfb, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfd,
                                   0xff, 0xff, 0xff, 0xfe, 0xff, 0xff, 0xff};
    const struct tiny_symbol symbol = {"f", 0, 21, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)};
    const struct tiny_elf tiny = {
        .text = text, .text_size = sizeof(text), .symbols = &symbol, .symbol_count = 1};
    AUTO_CLOSE int fd = tiny_elf_file(&tiny);
    AUTO_ELF_IMAGE struct elf_image *image = NULL;
    AUTO_FLOW_MAP struct flow_map *map = NULL;
    struct image_function *list;
    bool all_taken;
    size_t count;

    cr_assert_eq(elf_image_open_fd(fd, "tiny", &image, NULL), 0);
    cr_assert_eq(image_functions(image, &list, &count, NULL), 0);
    cr_assert_eq(flow_image_map(image, list, count, &map, &all_taken, NULL), 0);
    for (size_t at = 0; at < 21; at++)
        cr_expect_eq(flow_map_has(map, TINY_TEXT + at, FLOW_LISTED), at == 16 || at == 20, "%zu", at);
    cr_expect(flow_map_has(map, TINY_TEXT + 16, FLOW_TARGET));
    image_functions_free(list, count);
}

static const struct image_function *named(const struct image_function *list, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0)
            return &list[i];
    cr_assert_fail("no %s", name);
    return NULL;
}

static int only_called(int number)
{
    return number + 1;
}

int (*volatile taken)(int) = only_called;

Test(flow_image, addresses_in_data_and_exports_are_taken)
{
    AUTO_ELF_IMAGE struct elf_image *image = NULL;
    AUTO_FLOW_MAP struct flow_map *map = NULL;
    struct image_function *list;
    bool all_taken = false;
    size_t count;

    cr_assert_eq(elf_image_open("/proc/self/exe", &image, NULL), 0);
    cr_assert_eq(image_functions(image, &list, &count, NULL), 0);
    cr_assert_eq(flow_image_map(image, list, count, &map, &all_taken, NULL), 0);
    cr_expect(all_taken);
    cr_expect_eq(taken(1), 2);
    cr_expect(flow_map_has(map, named(list, count, "only_called")->address, FLOW_TAKEN),
              "a relocated pointer");
    cr_expect(flow_map_has(map, named(list, count, "compare_libc")->address, FLOW_TAKEN), "an argument");
    cr_expect(flow_map_has(map, named(list, count, "_start")->address, FLOW_TAKEN), "the entry point");
    cr_expect_not(flow_map_has(map, named(list, count, "flow_map_new")->address, FLOW_TAKEN), "only called");
    image_functions_free(list, count);
}
