/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Every function of the images that this program consists of, displaced, and checked against a second
 * opinion: Capstone with its details. No branch or call of the image leads into the patched bytes, and each
 * instruction in the stub does what the original does: the same operation, operands and places.
 */
#include <capstone/capstone.h>
#include <criterion/criterion.h>
#include <link.h>
#include <string.h>

#include "base/array.h"
#include "collector/agent/record.h"
#include "collector/backend/displace_image.h"
#include "collector/backend/stub_x86_64.h"

struct opinion {
    struct elf_image *image;
    struct image_function *functions;
    size_t count;
    struct displace_site *sites;
    csh handle;
    cs_insn *original, *moved;
    uint64_t *targets; /* of branches and calls, sorted */
    size_t target_count, target_capacity;
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

static void check_patched(const struct opinion *opinion, const struct displace_site *site, const char *name)
{
    for (uint64_t at = site->address + 1; at < site->address + DISPLACE_JUMP; at++)
        cr_expect_null(bsearch(&at, opinion->targets, opinion->target_count, sizeof(at), compare_addresses),
                       "%s: something leads to %#lx", name, (unsigned long)at);
}

static void check_site(struct opinion *opinion, size_t index)
{
    const struct displace_site *site = &opinion->sites[index];
    const struct displacement *displacement = &site->displacement;
    const struct image_function *function = &opinion->functions[index];
    struct stub_order order = {.number = (uint32_t)index + 1,
                               .address = 0x40000000,
                               .head = 0x40000000 - AGENT_STUBS_OFFSET,
                               .function = function->address,
                               .code = site->code,
                               .displacement = displacement};
    uint8_t bytes[512];
    struct stub stub;

    check_patched(opinion, site, function->name);
    cr_assert_eq(stub_x86_64.emit(&order, bytes, sizeof(bytes), &stub), 0, "%s", function->name);
    cr_expect_leq(stub.size, stub_x86_64.stub_max);
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
    size_t called = 0, placed = 0;

    cr_assert_eq(elf_image_open(path, &opinion.image, NULL), 0);
    cr_assert_eq(image_functions(opinion.image, &opinion.functions, &opinion.count, NULL), 0);
    cr_assert_eq(displace_image(opinion.image, opinion.functions, opinion.count, &opinion.sites, NULL), 0);
    cr_assert_eq(cs_open(CS_ARCH_X86, CS_MODE_64, &opinion.handle), CS_ERR_OK);
    cs_option(opinion.handle, CS_OPT_DETAIL, CS_OPT_ON);
    opinion.original = cs_malloc(opinion.handle);
    opinion.moved = cs_malloc(opinion.handle);
    for (size_t i = 0; i < opinion.count; i++)
        collect_targets(&opinion, &opinion.functions[i]);
    qsort(opinion.targets, opinion.target_count, sizeof(*opinion.targets), compare_addresses);
    for (size_t i = 0; i < opinion.count; i++) {
        called += opinion.sites[i].refusal != DISPLACE_NO_FUNCTION;
        cr_expect_str_neq(displace_site_text(&opinion.sites[i]), "unknown");
        if (opinion.sites[i].refusal != DISPLACE_OK)
            continue;
        placed++;
        check_site(&opinion, i);
    }
    cr_expect_gt(placed, called * 98 / 100, "%s: %zu of %zu", path, placed, called);
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
