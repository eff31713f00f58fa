/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Every function of the images that this program consists of, displaced, and checked against a second
 * opinion: Capstone with its details. No branch or call of the image leads into the patched bytes, each
 * instruction in the stub does what the original does: the same operation, operands and places; and what the
 * stub does not save is overwritten by the function before it reads it.
 */
#include <capstone/capstone.h>
#include <criterion/criterion.h>
#include <link.h>
#include <string.h>

#include "base/array.h"
#include "collector/arch/record.h"
#include "collector/arch/stub.h"
#include "collector/displace/displace_image.h"
#include "image/flow/flow_image.h"

struct opinion {
    struct elf_image *image;
    struct image_function *functions;
    size_t count;
    struct displace_site *sites;
    csh handle;
    cs_insn *original, *moved;
    uint64_t *targets; /* of branches and calls, sorted */
    size_t target_count, target_capacity;
    size_t registers_dead, flags_dead; /* functions with some */
};

static bool is_direct(const struct opinion *opinion, const cs_insn *instruction)
{
    const cs_x86 *x86 = &instruction->detail->x86;

    return (cs_insn_group(opinion->handle, instruction, CS_GRP_JUMP) ||
            cs_insn_group(opinion->handle, instruction, CS_GRP_CALL)) &&
           x86->op_count == 1 && x86->operands[0].type == X86_OP_IMM;
}

static uint64_t target(const cs_insn *instruction)
{
    return (uint64_t)instruction->detail->x86.operands[0].imm;
}

static bool decode(struct opinion *opinion, const uint8_t *code, size_t size, uint64_t address, cs_insn *into)
{
    return code && cs_disasm_iter(opinion->handle, &code, &size, &address, into);
}

/* Up to the first instruction that Capstone does not know (some of AVX-512): behind it, it may take the
 * middle of one for its beginning. */
static void collect_targets(struct opinion *opinion, const struct image_function *function)
{
    size_t size = 0;
    const uint8_t *code = elf_image_code(opinion->image, function->address, &size);
    uint64_t at = function->address, end = at + (function->size < size ? function->size : size);

    for (; at < end && decode(opinion, code, end - at, at, opinion->original);
         at += opinion->original->size) {
        code += opinion->original->size;
        if (!is_direct(opinion, opinion->original))
            continue;
        cr_assert_eq(array_reserve(&opinion->targets, &opinion->target_capacity, opinion->target_count + 1),
                     0);
        opinion->targets[opinion->target_count++] = target(opinion->original);
    }
}

static int compare_addresses(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

    return (a > b) - (a < b);
}

/* The place that an operand relative to RIP names; 0: there is none. */
static uint64_t place(const cs_insn *instruction)
{
    const cs_x86 *x86 = &instruction->detail->x86;

    for (int i = 0; i < x86->op_count; i++)
        if (x86->operands[i].type == X86_OP_MEM && x86->operands[i].mem.base == X86_REG_RIP)
            return instruction->address + instruction->size + (uint64_t)x86->operands[i].mem.disp;
    return 0;
}

/* The same operands, or the same with another distance from RIP. */
static bool has_same_operands(const cs_insn *moved, const cs_insn *original)
{
    const cs_x86 *a = &moved->detail->x86, *b = &original->detail->x86;

    if (place(moved) != place(original) || a->op_count != b->op_count)
        return false;
    if (!place(original))
        return strcmp(moved->op_str, original->op_str) == 0;
    for (int i = 0; i < a->op_count; i++)
        if (a->operands[i].type != b->operands[i].type || a->operands[i].size != b->operands[i].size ||
            (a->operands[i].type == X86_OP_REG && a->operands[i].reg != b->operands[i].reg) ||
            (a->operands[i].type == X86_OP_IMM && a->operands[i].imm != b->operands[i].imm))
            return false;
    return true;
}

/* Decodes the instruction behind the last one of the stub; returns its bytes. */
static const uint8_t *decode_next(struct opinion *opinion, const uint8_t *code)
{
    uint64_t address = opinion->moved->address + opinion->moved->size;

    code += opinion->moved->size;
    cr_assert(decode(opinion, code, 16, address, opinion->moved));
    return code;
}

/* A call is `call; int3; lea`, which leave no trace, a push of where the original returns to, and a jump. */
static void check_call(struct opinion *opinion, const uint8_t *code, const char *name)
{
    const cs_insn *original = opinion->original;
    uint64_t pushed;

    cr_expect_eq(opinion->moved->id, X86_INS_CALL, "%s", name);
    cr_expect_eq(target(opinion->moved), opinion->moved->address + opinion->moved->size + 1, "%s", name);
    code = decode_next(opinion, code);
    code = decode_next(opinion, code);
    cr_expect_str_eq(opinion->moved->op_str, "rsp, [rsp + 8]", "%s", name);
    code = decode_next(opinion, code);
    cr_expect_eq(opinion->moved->id, X86_INS_PUSH, "%s", name);
    memcpy(&pushed, code + (place(opinion->moved) - opinion->moved->address), sizeof(pushed));
    cr_expect_eq(pushed, original->address + original->size, "%s", name);
    decode_next(opinion, code);
    cr_expect_eq(opinion->moved->id, X86_INS_JMP, "%s", name);
    if (is_direct(opinion, original))
        cr_expect_eq(target(opinion->moved), target(original), "%s", name);
    else
        cr_expect(has_same_operands(opinion->moved, original), "%s", name);
}

/* loop and jrcxz keep their distance of one byte, to a jump behind the next one. */
static void check_branch(const struct opinion *opinion, const uint8_t *code, const char *name)
{
    const cs_insn *original = opinion->original, *moved = opinion->moved;
    int32_t distance;

    cr_expect_eq(moved->id, original->id, "%s", name);
    if (original->id != X86_INS_JRCXZ && original->id != X86_INS_JECXZ && original->id != X86_INS_LOOP) {
        cr_expect_eq(target(moved), target(original), "%s", name);
        return;
    }
    memcpy(&distance, code + (target(moved) - moved->address) + 1, sizeof(distance));
    cr_expect_eq(target(moved) + 5 + (uint64_t)(int64_t)distance, target(original), "%s", name);
}

static void check_moved(struct opinion *opinion, const uint8_t *code, const char *name)
{
    if (cs_insn_group(opinion->handle, opinion->original, CS_GRP_CALL)) {
        check_call(opinion, code, name);
    } else if (is_direct(opinion, opinion->original)) {
        check_branch(opinion, code, name);
    } else {
        cr_expect_eq(opinion->moved->id, opinion->original->id, "%s", name);
        cr_expect(has_same_operands(opinion->moved, opinion->original), "%s: %s, was %s", name,
                  opinion->moved->op_str, opinion->original->op_str);
    }
}

/* What stays in front of the patched bytes leads on to them, and accesses nothing but the image's data and the stack. */
static void check_stays(struct opinion *opinion, const struct displace_site *site, const char *name)
{
    uint8_t offset = site->displacement.offset;
    const cs_x86 *detail;

    if (!offset)
        return;
    cr_assert(decode(opinion, site->code, offset, site->address - offset, opinion->original));
    cr_expect_eq(opinion->original->size, offset, "%s", name);
    cr_expect_not(cs_insn_group(opinion->handle, opinion->original, CS_GRP_JUMP) ||
                      cs_insn_group(opinion->handle, opinion->original, CS_GRP_CALL) ||
                      cs_insn_group(opinion->handle, opinion->original, CS_GRP_RET) ||
                      cs_insn_group(opinion->handle, opinion->original, CS_GRP_INT),
                  "%s: %s", name, opinion->original->mnemonic);
    detail = &opinion->original->detail->x86;
    for (uint8_t i = 0; i < detail->op_count; i++)
        cr_expect(detail->operands[i].type != X86_OP_MEM || detail->operands[i].mem.base == X86_REG_RIP ||
                      opinion->original->id == X86_INS_LEA || opinion->original->id == X86_INS_NOP,
                  "%s: %s %s", name, opinion->original->mnemonic, opinion->original->op_str);
}

static void check_patched(const struct opinion *opinion, const struct displace_site *site, const char *name)
{
    for (uint64_t at = site->address + 1; at < site->address + DISPLACE_JUMP; at++)
        cr_expect_null(bsearch(&at, opinion->targets, opinion->target_count, sizeof(at), compare_addresses),
                       "%s: something leads to %#lx", name, (unsigned long)at);
}

/* ---------------------------------------------------------------------------------------------- liveness */

/* Which general register Capstone's is a part of, as processors number them; -1: another one. `ret_whole`: a
 * write leaves nothing of what was in it. */
static int register_number(csh handle, unsigned id, bool *ret_whole)
{
    static const char *const names[][4] = {
        {"rax", "eax", "ax", "al"},  {"rcx", "ecx", "cx", "cl"},      {"rdx", "edx", "dx", "dl"},
        {"rbx", "ebx", "bx", "bl"},  {"rsp", "esp", "sp", "spl"},     {"rbp", "ebp", "bp", "bpl"},
        {"rsi", "esi", "si", "sil"}, {"rdi", "edi", "di", "dil"},     {"r8", "r8d", "r8w", "r8b"},
        {"r9", "r9d", "r9w", "r9b"}, {"r10", "r10d", "r10w", "r10b"}, {"r11", "r11d", "r11w", "r11b"}};
    const char *name = cs_reg_name(handle, id);

    for (size_t i = 0; name && i < ARRAY_SIZE(names); i++)
        for (size_t width = 0; width < 4; width++)
            if (!strcmp(name, names[i][width])) {
                *ret_whole = width < 2;
                return (int)i;
            }
    *ret_whole = false;
    if (name && strlen(name) == 2 && name[1] == 'h') /* ah, ch, dh, bh */
        return name[0] == 'a' ? 0 : name[0] == 'c' ? 1 : name[0] == 'd' ? 2 : 3;
    return -1;
}

/* xor and sub of a register with itself leave nothing of it; the operand of nop is not looked at. */
static bool reads_nothing(const cs_insn *instruction)
{
    const cs_x86 *x86 = &instruction->detail->x86;

    if (instruction->id == X86_INS_NOP)
        return true;
    return (instruction->id == X86_INS_XOR || instruction->id == X86_INS_SUB) &&
           x86->operands[0].type == X86_OP_REG && x86->operands[1].type == X86_OP_REG &&
           x86->operands[0].reg == x86->operands[1].reg && x86->operands[0].size >= 4;
}

static bool overwrites_flags(const cs_insn *instruction)
{
    uint64_t done = instruction->detail->x86.eflags;

#define DONE(flag) (done & (X86_EFLAGS_MODIFY_##flag | X86_EFLAGS_RESET_##flag | X86_EFLAGS_UNDEFINED_##flag))
    return DONE(OF) && DONE(SF) && DONE(ZF) && DONE(AF) && DONE(PF) && DONE(CF);
#undef DONE
}

static bool reads_flags(const cs_insn *instruction)
{
    return instruction->detail->x86.eflags & (X86_EFLAGS_TEST_OF | X86_EFLAGS_TEST_SF | X86_EFLAGS_TEST_ZF |
                                              X86_EFLAGS_TEST_PF | X86_EFLAGS_TEST_CF);
}

/* What is left of `claimed` behind the instruction; a register of it that is read is an error. */
static struct liveness check_effect(const struct opinion *opinion, struct liveness claimed, const char *name)
{
    const cs_insn *instruction = opinion->original;
    uint8_t read_count, write_count;
    cs_regs reads, writes;
    bool whole;

    cr_assert_eq(cs_regs_access(opinion->handle, instruction, reads, &read_count, writes, &write_count), 0);
    for (size_t i = 0; i < read_count && !reads_nothing(instruction); i++) {
        int number = register_number(opinion->handle, reads[i], &whole);

        cr_expect(number < 0 || !(claimed.dead >> number & 1), "%s: %s %s reads register %d", name,
                  instruction->mnemonic, instruction->op_str, number);
    }
    cr_expect_not(claimed.flags_dead && reads_flags(instruction), "%s: %s reads flags", name,
                  instruction->mnemonic);
    for (size_t i = 0; i < write_count; i++) {
        int number = register_number(opinion->handle, writes[i], &whole);

        if (number >= 0 && whole)
            claimed.dead &= (uint16_t) ~(1u << number);
    }
    if (overwrites_flags(instruction))
        claimed.flags_dead = false;
    return claimed;
}

static void check_liveness(struct opinion *opinion, const struct displace_site *site, const char *name)
{
    struct liveness left = site->displacement.liveness;
    uint64_t at = site->address;
    size_t size;
    const uint8_t *code = elf_image_code(opinion->image, at, &size);

    opinion->registers_dead += left.dead != 0;
    opinion->flags_dead += left.flags_dead;
    while (left.dead || left.flags_dead) {
        cr_assert(decode(opinion, code, size, at, opinion->original), "%s", name);
        cr_assert_not(cs_insn_group(opinion->handle, opinion->original, CS_GRP_JUMP) ||
                          cs_insn_group(opinion->handle, opinion->original, CS_GRP_CALL) ||
                          cs_insn_group(opinion->handle, opinion->original, CS_GRP_RET),
                      "%s: the way through it is not the only one", name);
        left = check_effect(opinion, left, name);
        at += opinion->original->size;
        code += opinion->original->size;
        size -= opinion->original->size;
    }
}

/* ---------------------------------------------------------------------------------------------- images */

static void check_site(struct opinion *opinion, size_t index)
{
    const struct displace_site *site = &opinion->sites[index];
    const struct displacement *displacement = &site->displacement;
    const struct image_function *function = &opinion->functions[index];
    struct stub_order order = {.number = (uint32_t)index + 1,
                               .address = 0x40000000,
                               .aside = 0x40800000,
                               .head = 0x40000000 - AGENT_STUBS_OFFSET,
                               .function = function->address,
                               .code = site->code,
                               .displacement = displacement};
    uint8_t bytes[512], aside[512];
    struct stub stub;

    check_stays(opinion, site, function->name);
    check_patched(opinion, site, function->name);
    check_liveness(opinion, site, function->name);
    cr_assert_eq(stub_emit(&order, bytes, sizeof(bytes), aside, &stub), 0, "%s", function->name);
    cr_expect_leq(stub.size, stub_max);
    cr_expect_leq(stub.aside, stub_aside_max);
    for (size_t i = 0; i < displacement->count; i++) {
        size_t at = displacement->starts[i], moved = stub.moved[i];

        cr_assert(decode(opinion, site->code + displacement->offset + at, displacement->length - at,
                         site->address + at, opinion->original));
        cr_assert(decode(opinion, bytes + moved, stub.size - moved, order.address + moved, opinion->moved));
        check_moved(opinion, bytes + moved, function->name);
    }
    if (displacement->falls) {
        cr_assert(decode(opinion, bytes + stub.size - 5, 5, order.address + stub.size - 5, opinion->moved));
        cr_expect_eq(target(opinion->moved), site->address + displacement->length, "%s", function->name);
    }
}

static void check_image(const char *path)
{
    struct opinion opinion = {0};
    struct flow_map *map = NULL;
    size_t called = 0, placed = 0;
    bool all_taken;

    cr_assert_eq(elf_image_open(path, &opinion.image, NULL), 0);
    cr_assert_eq(image_functions(opinion.image, &opinion.functions, &opinion.count, NULL), 0);
    cr_assert_eq(flow_image_map(opinion.image, opinion.functions, opinion.count, &map, &all_taken, NULL), 0);
    cr_assert_eq(displace_image(opinion.image, opinion.functions, opinion.count, map, &opinion.sites, NULL),
                 0);
    flow_map_free(map);
    cr_assert_eq(cs_open(CS_ARCH_X86, CS_MODE_64, &opinion.handle), CS_ERR_OK);
    cs_option(opinion.handle, CS_OPT_DETAIL, CS_OPT_ON);
    opinion.original = cs_malloc(opinion.handle);
    opinion.moved = cs_malloc(opinion.handle);
    for (size_t i = 0; i < opinion.count; i++)
        collect_targets(&opinion, &opinion.functions[i]);
    qsort(opinion.targets, opinion.target_count, sizeof(*opinion.targets), compare_addresses);
    for (size_t i = 0; i < opinion.count; i++) {
        called += opinion.sites[i].refusal != DISPLACE_NO_FUNCTION;
        if (opinion.sites[i].refusal != DISPLACE_OK)
            continue;
        placed++;
        check_site(&opinion, i);
    }
    cr_expect_gt(placed, called * 98 / 100, "%s: %zu of %zu", path, placed, called);
    cr_expect_gt(opinion.registers_dead, placed / 4, "%s: %zu", path, opinion.registers_dead);
    cr_expect_gt(opinion.flags_dead, placed / 4, "%s: %zu", path, opinion.flags_dead);
    free(opinion.targets);
    free(opinion.sites);
    cs_free(opinion.original, 1);
    cs_free(opinion.moved, 1);
    cs_close(&opinion.handle);
    image_functions_free(opinion.functions, opinion.count);
    elf_image_free(opinion.image);
}

static int check_loaded(struct dl_phdr_info *info, size_t size, void *data)
{
    const char *path = *info->dlpi_name ? info->dlpi_name : "/proc/self/exe";

    if (*info->dlpi_name && !strstr(path, "/libc.so") && !strstr(path, "/libdw"))
        return 0;
    check_image(path);
    ++*(int *)data;
    return 0;
}

Test(displace_image, a_second_opinion_agrees)
{
    int images = 0;

    dl_iterate_phdr(check_loaded, &images);
    cr_expect_eq(images, 3);
}
