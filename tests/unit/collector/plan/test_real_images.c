/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The plans of the images that this program consists of, checked against a second opinion: Capstone with its
 * details, over all instructions. Every site is reached from the entry without a branch, nothing branches to
 * it or to what lies before it but the entry, rsp has moved as the plan says, and every probed call calls
 * that function.
 */
#include <capstone/capstone.h>
#include <criterion/criterion.h>
#include <link.h>
#include <string.h>

#include "base/array.h"
#include "tests/unit/collector/subject.h"

struct opinion {
    csh handle;
    cs_insn *instruction;
    uint64_t *targets; /* of jumps, sorted */
    size_t count, capacity;
};

static bool in_group(const struct opinion *opinion, cs_group_type group)
{
    return cs_insn_group(opinion->handle, opinion->instruction, group);
}

static bool is_direct(const struct opinion *opinion)
{
    const cs_x86 *x86 = &opinion->instruction->detail->x86;

    return x86->op_count == 1 && x86->operands[0].type == X86_OP_IMM;
}

static uint64_t target(const struct opinion *opinion)
{
    return (uint64_t)opinion->instruction->detail->x86.operands[0].imm;
}

static bool decode(struct opinion *opinion, struct elf_image *image, uint64_t address)
{
    size_t size = 0;
    const uint8_t *code = elf_image_code(image, address, &size);

    return code && cs_disasm_iter(opinion->handle, &code, &size, &address, opinion->instruction);
}

static void collect_targets(struct opinion *opinion, const struct subject *subject,
                            const struct image_function *function)
{
    uint64_t end = function->address + function->size;

    for (uint64_t at = function->address; at < end;) {
        if (!decode(opinion, subject->image, at)) {
            at++;
            continue;
        }
        at += opinion->instruction->size;
        if (!in_group(opinion, CS_GRP_JUMP) || !is_direct(opinion))
            continue;
        cr_assert_eq(array_reserve(&opinion->targets, &opinion->capacity, opinion->count + 1), 0);
        opinion->targets[opinion->count++] = target(opinion);
    }
}

static int compare_addresses(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

    return (a > b) - (a < b);
}

static bool writes_stack_pointer(const struct opinion *opinion)
{
    cs_regs read, written;
    uint8_t read_count, written_count;

    cr_assert_eq(
        cs_regs_access(opinion->handle, opinion->instruction, read, &read_count, written, &written_count), 0);
    for (int i = 0; i < written_count; i++)
        if (written[i] == X86_REG_RSP || written[i] == X86_REG_ESP || written[i] == X86_REG_SP)
            return true;
    return false;
}

/* How far rsp moves down; the test fails for what is not among the few ways of doing that. */
static int64_t moves_down(const struct opinion *opinion, const char *name)
{
    const cs_x86_op *operands = opinion->instruction->detail->x86.operands;

    switch (opinion->instruction->id) {
    case X86_INS_PUSH:
    case X86_INS_PUSHFQ:
        return 8;
    case X86_INS_POP:
        return -8;
    case X86_INS_SUB:
        return operands[1].imm;
    case X86_INS_ADD:
        return -operands[1].imm;
    case X86_INS_LEA:
        cr_expect_eq(operands[1].mem.base, X86_REG_RSP, "%s", name);
        return -operands[1].mem.disp;
    default:
        cr_expect_not(writes_stack_pointer(opinion), "%s: %s %s", name, opinion->instruction->mnemonic,
                      opinion->instruction->op_str);
        return 0;
    }
}

static bool moves_stack_pointer(const struct opinion *opinion)
{
    const cs_x86_op *operands = opinion->instruction->detail->x86.operands;

    switch (opinion->instruction->id) {
    case X86_INS_SUB:
    case X86_INS_ADD:
    case X86_INS_LEA:
        return operands[0].type == X86_OP_REG && operands[0].reg == X86_REG_RSP;
    default:
        return true;
    }
}

static void check_way(struct opinion *opinion, const struct subject *subject, const struct plan_probe *probe)
{
    const struct image_function *function = &subject->functions[probe->function];
    uint64_t at = function->address;
    int64_t sp_offset = 0;

    for (; at < probe->address; at += opinion->instruction->size) {
        cr_assert(decode(opinion, subject->image, at), "%s", function->name);
        cr_expect_not(in_group(opinion, CS_GRP_JUMP) || in_group(opinion, CS_GRP_CALL) ||
                          in_group(opinion, CS_GRP_RET) || in_group(opinion, CS_GRP_INT),
                      "%s: %s before its site", function->name, opinion->instruction->mnemonic);
        if (moves_stack_pointer(opinion))
            sp_offset += moves_down(opinion, function->name);
    }
    cr_expect_eq(at, probe->address, "%s: its site lies inside an instruction", function->name);
    cr_expect_eq(sp_offset, probe->sp_offset, "%s: %ld, not %u", function->name, sp_offset, probe->sp_offset);
    cr_expect(decode(opinion, subject->image, at), "%s", function->name);
}

/* Whether a jump leads to where `probe` is passed but the entry; to the entry only from elsewhere. */
static void check_targets(const struct opinion *opinion, const struct subject *subject,
                          const struct plan_probe *probe)
{
    const struct image_function *function = &subject->functions[probe->function];

    for (uint64_t at = function->address + 1; at <= probe->address; at++)
        cr_expect_null(bsearch(&at, opinion->targets, opinion->count, sizeof(at), compare_addresses),
                       "%s: a branch leads to %#lx", function->name, (unsigned long)at);
}

static void check_call(struct opinion *opinion, const struct subject *subject, const struct plan_probe *probe)
{
    const struct image_function *function = &subject->functions[probe->function];

    cr_assert(decode(opinion, subject->image, probe->address), "%s", function->name);
    cr_expect(in_group(opinion, probe->kind == PLAN_AT_CALL ? CS_GRP_CALL : CS_GRP_JUMP), "%s",
              function->name);
    cr_expect(is_direct(opinion) && target(opinion) == function->address, "%s", function->name);
    cr_expect(probe->kind == PLAN_AT_JUMP || opinion->instruction->size == 5, "%s", function->name);
}

static void check_image(const char *path, const struct plan_options *options)
{
    AUTO_SUBJECT struct subject subject = subject_file(path, options);
    struct opinion opinion = {0};

    cr_assert_eq(cs_open(CS_ARCH_X86, CS_MODE_64, &opinion.handle), CS_ERR_OK);
    cs_option(opinion.handle, CS_OPT_DETAIL, CS_OPT_ON);
    opinion.instruction = cs_malloc(opinion.handle);
    for (size_t i = 0; i < subject.count; i++)
        collect_targets(&opinion, &subject, &subject.functions[i]);
    qsort(opinion.targets, opinion.count, sizeof(*opinion.targets), compare_addresses);
    cr_assert_gt(subject.plan->count, 50, "%s", path);
    for (size_t i = 0; i < subject.plan->count; i++) {
        const struct plan_probe *probe = &subject.plan->probes[i];

        if (probe->kind == PLAN_AT_ENTRY) {
            check_way(&opinion, &subject, probe);
            check_targets(&opinion, &subject, probe);
        } else if (probe->kind != PLAN_AT_RETURN) {
            check_call(&opinion, &subject, probe);
        } else {
            cr_assert(decode(&opinion, subject.image, probe->address));
            cr_expect(in_group(&opinion, CS_GRP_RET));
        }
    }
    free(opinion.targets);
    cs_free(opinion.instruction, 1);
    cs_close(&opinion.handle);
}

struct visit {
    struct plan_options options;
    int images;
};

static int check_loaded(struct dl_phdr_info *info, size_t size, void *data)
{
    struct visit *visit = data;
    const char *path = *info->dlpi_name ? info->dlpi_name : "/proc/self/exe";

    if (*info->dlpi_name && !strstr(path, "/libc.so") && !strstr(path, "/libdw"))
        return 0;
    check_image(path, &visit->options);
    visit->images++;
    return 0;
}

Test(real_images, sites_are_where_every_call_comes_by_once)
{
    struct visit visit = {.options = {.returns = PLAN_RETURNS_INFER}};

    dl_iterate_phdr(check_loaded, &visit);
    cr_expect_eq(visit.images, 3);
}

Test(real_images, entries_and_returns)
{
    struct visit visit = {.options = {.returns = PLAN_RETURNS_SITES}};

    dl_iterate_phdr(check_loaded, &visit);
    cr_expect_eq(visit.images, 3);
}

static const struct plan_probe *probe_of(const struct plan *plan, size_t function)
{
    for (size_t i = 0; i < plan->count; i++)
        if (plan->probes[i].function == function)
            return &plan->probes[i];
    return NULL;
}

/* A place that serves a return probe at the best price is the place without one, too; only calls and jumps
 * may be given to the functions that they lead to. */
Test(real_images, return_probes_are_there_only_when_they_are_wanted)
{
    const struct plan_options probe = {.returns = PLAN_RETURNS_PROBE};
    AUTO_SUBJECT struct subject automatic = subject_file("/bin/bash", NULL);
    AUTO_SUBJECT struct subject probed = subject_file("/bin/bash", &probe);
    size_t cheap = 0;

    cr_expect_eq(automatic.plan->return_probes, 0);
    for (size_t i = 0; i < probed.plan->count; i++) {
        const struct plan_probe *before = &probed.plan->probes[i], *after;
        size_t size = 0;
        const uint8_t *code = elf_image_code(probed.image, before->address, &size);

        if (!before->return_probe || before->class != SITE_EMULATED || *code == 0xe8 || *code == 0xe9 ||
            *code == 0xeb)
            continue;
        cheap++;
        after = probe_of(automatic.plan, before->function);
        cr_assert_not_null(after);
        cr_expect(!after->return_probe && after->address == before->address, "%s",
                  probed.functions[before->function].name);
    }
    cr_expect_gt(cheap, 20);
}
