/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which first bytes may be replaced, what moves, and why the others may not; from bytes written by hand. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/array.h"
#include "collector/arch/machine_code.h"
#include "collector/arch/relocate.h"
#include "collector/displace/displace.h"
#include "image/flow/branch_targets.h"

#define ADDRESS 0x401000

/* The code of a whole image; the function begins at `entry`, has `size` bytes, and `next` begins behind it.
 */
struct subject {
    uint8_t code[64];
    size_t entry, size, next; /* 0: up to the end of `code` */
};

static enum displace_refusal look(const struct subject *subject, struct displacement *ret_displacement)
{
    AUTO_DISASM struct disasm *disasm = NULL;
    AUTO_FLOW_MAP struct flow_map *map = NULL;
    size_t next = subject->next ? subject->next : sizeof(subject->code);
    const struct image_function functions[] = {
        {.address = ADDRESS + subject->entry, .size = subject->size},
        {.address = ADDRESS + next, .size = sizeof(subject->code) - next},
    };
    const struct displace_subject function = {subject->code + subject->entry, ADDRESS + subject->entry,
                                              subject->size, next - subject->entry};

    cr_assert_eq(disasm_new(&disasm, NULL), 0);
    cr_assert_eq(flow_map_new(&map), 0);
    cr_assert_eq(flow_map_add(map, subject->code, sizeof(subject->code), ADDRESS), 0);
    cr_assert_eq(flow_map_walk(map, functions, subject->next ? 2 : 1, false), 0);
    branch_targets_mark(map);
    return displace_function(disasm, map, &function, ret_displacement);
}

static enum displace_refusal refusal(const struct subject *subject)
{
    struct displacement displacement = {.count = 99};
    enum displace_refusal refusal = look(subject, &displacement);

    cr_expect(refusal == DISPLACE_OK || displacement.count == 99, "untouched where refused");
    return refusal;
}

#define EXPECT(expected, ...) \
    cr_expect_eq(refusal(&(struct subject){.size = 16, .code = {__VA_ARGS__}}), expected)

Test(displace, takes_whole_instructions)
{
    /* mov (%rdi),%rax; push %rbp; mov %rsp,%rbp */
    const struct subject subject = {.size = 16, .code = {0x48, 0x8b, 0x07, 0x55, 0x48, 0x89, 0xe5, 0xc3}};
    struct displacement displacement;

    cr_assert_eq(look(&subject, &displacement), DISPLACE_OK);
    cr_assert_eq(displacement.offset, 0);
    cr_assert_eq(displacement.length, 7);
    cr_assert_eq(displacement.count, 3);
    cr_assert_arr_eq(displacement.starts, ((uint8_t[]){0, 3, 4}), 3);
    cr_assert(displacement.falls);
    cr_assert_not(displacement.calls);
}

/* How many bytes of the function stay in front of what is patched, and how far they have moved the stack. */
static void expect_stays(const struct subject *subject, uint8_t offset, uint32_t pushed)
{
    struct displacement displacement;

    cr_assert_eq(look(subject, &displacement), DISPLACE_OK);
    cr_expect_eq(displacement.offset, offset, "%u bytes stay, not %u", displacement.offset, offset);
    cr_expect_eq(displacement.pushed, pushed, "%u bytes are pushed, not %u", displacement.pushed, pushed);
}

#define EXPECT_STAYS(offset, pushed, ...) \
    expect_stays(&(struct subject){.size = 24, .code = {__VA_ARGS__}}, offset, pushed)

/* Another tool's breakpoint at the entry replaces one byte, and goes on behind the first instruction. */
Test(displace, the_first_instruction_stays)
{
    EXPECT_STAYS(1, 8, 0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10);  /* push %rbp; mov; sub */
    EXPECT_STAYS(2, 8, 0x41, 0x57, 0x41, 0x56, 0x41, 0x55, 0x41, 0x54);  /* push %r15... */
    EXPECT_STAYS(4, 24, 0x48, 0x83, 0xec, 0x18, 0x48, 0x89, 0x3c, 0x24); /* sub $24,%rsp; mov %rdi,(%rsp) */
    EXPECT_STAYS(7, 0x108, 0x48, 0x81, 0xec, 0x08, 0x01, 0, 0, 0xb8);    /* sub $0x108,%rsp */
    EXPECT_STAYS(2, 0, 0x31, 0xc0, 0x48, 0x89, 0xf8, 0x48, 0x89, 0xfa);  /* xor %eax,%eax; mov; mov */
    EXPECT_STAYS(4, 0, 0x48, 0x8d, 0x04, 0x37, 0x48, 0x89, 0xf8, 0x90, 0x90);       /* lea (%rdi,%rsi),%rax */
    EXPECT_STAYS(7, 0, 0x48, 0x8b, 0x05, 1, 0, 0, 0, 0x48, 0x89, 0xf8, 0x90, 0x90); /* mov 1(%rip),%rax */
}

Test(displace, the_first_instruction_moves_where_it_may_not_stay)
{
    EXPECT_STAYS(0, 0, 0x48, 0x8b, 0x07, 0x48, 0x89, 0xf8, 0x48, 0x89, 0xfa); /* mov (%rdi),%rax may fault */
    EXPECT_STAYS(0, 0, 0x48, 0x89, 0x37, 0x48, 0x89, 0xf8, 0x48, 0x89, 0xfa); /* mov %rsi,(%rdi) */
    EXPECT_STAYS(0, 0, 0x48, 0xf7, 0xf1, 0x48, 0x89, 0xf8, 0x48, 0x89, 0xfa); /* div %rcx */
    EXPECT_STAYS(0, 0, 0x58, 0x50, 0x48, 0x89, 0xf8, 0x48, 0x89, 0xfa); /* pop %rax: its return address */
    EXPECT_STAYS(0, 0, 0x48, 0x89, 0xc4, 0x48, 0x89, 0xf8, 0x48, 0x89, 0xfa); /* mov %rax,%rsp */
    EXPECT_STAYS(0, 0, 0x74, 0x08, 0x48, 0x89, 0xf8, 0x48, 0x89, 0xfa); /* je: the other way has no probe */
    EXPECT_STAYS(0, 0, 0xe8, 0x20, 0, 0, 0, 0x48, 0x89, 0xf8, 0x48, 0x89, 0xfa); /* call */
    EXPECT_STAYS(0, 0, 0xb8, 7, 0, 0, 0, 0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3); /* mov $7,%eax; dec; jne dec */
}

Test(displace, endbr_stays)
{
    /* endbr64; push %rbp; mov %rsp,%rbp; push %rbx */
    const struct subject subject = {.size = 16,
                                    .code = {0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0x53, 0xc3}};
    struct displacement displacement;

    cr_assert_eq(look(&subject, &displacement), DISPLACE_OK);
    cr_assert_eq(displacement.offset, 4);
    cr_assert_eq(displacement.length, 5);
    cr_assert_eq(displacement.count, 3);
}

Test(displace, endbr_may_be_all_of_a_function)
{
    const struct subject bare = {.size = 4, .next = 4, .code = {0xf3, 0x0f, 0x1e, 0xfa}};

    cr_expect_eq(refusal(&bare), DISPLACE_SHORT);
}

Test(displace, a_call_is_the_last)
{
    /* push %rbx; call +0x20 */
    const struct subject subject = {.size = 16, .code = {0x53, 0xe8, 0x20, 0, 0, 0}};
    struct displacement displacement;

    cr_assert_eq(look(&subject, &displacement), DISPLACE_OK);
    cr_assert_eq(displacement.length, 5);
    cr_assert(displacement.calls);
    cr_assert_not(displacement.falls);
    EXPECT(DISPLACE_RETURN, 0xff, 0xd0, 0x48, 0x89, 0xc3);       /* call *%rax; mov %rax,%rbx */
    EXPECT(DISPLACE_RETURN, 0x90, 0x90, 0xff, 0xd0, 0xc3);       /* nop; nop; call *%rax; ret */
    EXPECT(DISPLACE_OK, 0x90, 0x90, 0x90, 0xff, 0xd0, 0xc3);     /* returns behind the patch */
    EXPECT(DISPLACE_UNMOVABLE, 0x90, 0x90, 0xff, 0x54, 0x24, 8); /* call *8(%rsp) */
    EXPECT(DISPLACE_UNMOVABLE, 0x53, 0x53, 0x53, 0xff, 0xd4);    /* call *%rsp */
}

Test(displace, short_functions_take_padding)
{
    const struct subject padded = {.size = 1, .next = 16, .code = {0xc3, 0x66, 0x0f, 0x1f, 0x44, 0, 0}};
    const struct subject traps = {.size = 1, .next = 5, .code = {0xc3, 0xcc, 0xcc, 0xcc, 0xcc}};
    const struct subject code = {.size = 1, .next = 16, .code = {0xc3, 0x48, 0x89, 0xe5}};
    const struct subject next = {.size = 1, .next = 4, .code = {0xc3, 0x90, 0x90, 0x90, 0xc3}};
    const struct subject zeros = {.size = 3, .next = 16, .code = {0x31, 0xc0, 0xc3}};
    const struct subject falls = {.size = 2, .next = 16, .code = {0x31, 0xc0, 0x90, 0x90, 0x90, 0x90}};

    cr_expect_eq(refusal(&padded), DISPLACE_OK);
    cr_expect_eq(refusal(&traps), DISPLACE_OK);
    cr_expect_eq(refusal(&code), DISPLACE_BEHIND_JUMP);
    cr_expect_eq(refusal(&next), DISPLACE_SHORT);
    cr_expect_eq(refusal(&zeros), DISPLACE_BEHIND_JUMP, "zeros may be data");
    cr_expect_eq(refusal(&falls), DISPLACE_SHORT, "continues into something that is not the function's");
}

Test(displace, nothing_may_lead_into_the_patched_bytes)
{
    /* push %rbp; mov %rsp,%rbp; push %rbx; and elsewhere a branch to each of the bytes */
    struct subject subject = {.size = 16, .code = {0x55, 0x48, 0x89, 0xe5, 0x53, 0xc3}};

    for (uint8_t to = 0; to < 8; to++) {
        bool inside = to >= 1 && to <= 4;

        memcpy(subject.code + 32, (uint8_t[]){0xeb, to - 34}, 2); /* jmp rel8, outside the function */
        cr_expect_eq(refusal(&subject), inside ? DISPLACE_TARGET : DISPLACE_OK, "jmp to %u", to);
        memcpy(subject.code + 32, (uint8_t[]){0x90, 0x75, to - 35}, 3); /* jne rel8 */
        cr_expect_eq(refusal(&subject), inside ? DISPLACE_TARGET : DISPLACE_OK, "jne to %u", to);
        memcpy(subject.code + 32, (uint8_t[]){0xe2, to - 34, 0x90}, 3); /* loop */
        cr_expect_eq(refusal(&subject), inside ? DISPLACE_TARGET : DISPLACE_OK, "loop to %u", to);
        memcpy(subject.code + 32, (uint8_t[]){0xe8, to - 37, 0xff, 0xff, 0xff}, 5); /* call */
        cr_expect_eq(refusal(&subject), inside ? DISPLACE_TARGET : DISPLACE_OK, "call of %u", to);
        memset(subject.code + 32, 0, 5);
    }
}

Test(displace, a_branch_in_what_looks_like_an_operand_counts)
{
    /* movabs $..., %rax, with jmp -N in the operand: who walks from the instruction on does not see it */
    struct subject subject = {.size = 16, .code = {0x55, 0x48, 0x89, 0xe5, 0x53, 0xc3}};

    memcpy(subject.code + 32, (uint8_t[]){0x48, 0xb8, 0xe9, 1 - 39, 0xff, 0xff, 0xff, 0, 0, 0, 0xc3}, 11);
    cr_expect_eq(refusal(&subject), DISPLACE_TARGET);
    subject.code[35] = 0 - 39;
    cr_expect_eq(refusal(&subject), DISPLACE_OK, "to the first byte: a tail call");
    memcpy(subject.code + sizeof(subject.code) - 5, (uint8_t[]){0xe9, 4 - 64, 0xff, 0xff, 0xff}, 5);
    cr_expect_eq(refusal(&subject), DISPLACE_TARGET, "the last bytes of the code");
}

Test(displace, loops_are_refused)
{
    EXPECT(DISPLACE_LOOP, 0x48, 0xff, 0xcf, 0x48, 0x89, 0xf8, 0x75, 0xf8, 0xc3); /* dec; mov; jne entry */
    EXPECT(DISPLACE_TARGET, 0x31, 0xc0, 0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3);     /* xor; dec; jne dec */
}

Test(displace, what_cannot_move)
{
    EXPECT(DISPLACE_UNMOVABLE, 0x0f, 0x0b);                         /* ud2 */
    EXPECT(DISPLACE_UNMOVABLE, 0xcc);                               /* int3 */
    EXPECT(DISPLACE_UNMOVABLE, 0x0f, 0x05);                         /* syscall */
    EXPECT(DISPLACE_UNMOVABLE, 0xcd, 0x80);                         /* int $0x80 */
    EXPECT(DISPLACE_UNMOVABLE, 0xc7, 0xf8, 0, 0, 0, 0);             /* xbegin */
    EXPECT(DISPLACE_UNMOVABLE, 0xff, 0x1f, 0x90, 0x90, 0x90);       /* far call */
    EXPECT(DISPLACE_UNMOVABLE, 0xff, 0x2f, 0x90, 0x90, 0x90);       /* far jump */
    EXPECT(DISPLACE_UNMOVABLE, 0x67, 0x48, 0x8b, 0x05, 1, 0, 0, 0); /* mov 1(%eip), %rax */
    EXPECT(DISPLACE_OK, 0x67, 0x48, 0x8b, 0x07, 0x90);              /* mov (%edi), %rax */
    EXPECT(DISPLACE_UNDECODABLE, 0x06);
    EXPECT(DISPLACE_UNDECODABLE, 0x90, 0x90, 0x62, 0xff, 0xff, 0xff);
}

Test(displace, an_instruction_must_end_within_the_function)
{
    const struct subject cut = {.size = 4, .next = 4, .code = {0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8}};
    const struct subject empty = {.size = 0, .next = 16};

    cr_expect_eq(refusal(&cut), DISPLACE_UNDECODABLE);
    cr_expect_eq(refusal(&empty), DISPLACE_EMPTY);
}

Test(displace, every_refusal_has_words)
{
    for (int i = 0; i < DISPLACE_REFUSALS; i++)
        cr_expect_str_neq(displace_refusal_text(i), "unknown");
}

/* ---------------------------------------------------------------------------------------------- moved */

/* Moves one instruction from ADDRESS to `to`; returns how many bytes it has there, negative: the error. */
static int move(const uint8_t *bytes, size_t size, uint64_t to, uint8_t *moved)
{
    struct machine_code code = {.bytes = moved, .room = RELOCATED_BYTES, .address = to};
    struct instruction instruction;

    cr_assert_eq(disasm_skim(bytes, size, ADDRESS, &instruction), 0);
    cr_assert_eq(instruction.length, size);
    cr_assert(relocate_can(&instruction));
    relocate(&code, &instruction);
    return code.error ? code.error : (int)code.size;
}

#define BYTES(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

static void expect_moved(const uint8_t *from, size_t from_size, const uint8_t *expected, size_t size)
{
    uint8_t moved[RELOCATED_BYTES];
    int r = move(from, from_size, ADDRESS + 0x1000, moved);

    cr_assert_eq(r, (int)size, "%d bytes instead of %zu", r, size);
    cr_expect_arr_eq(moved, expected, size);
}

/* call 1f; int3; 1: lea 8(%rsp), %rsp; push DISTANCE(%rip) */
#define PUSH(distance) 0xe8, 1, 0, 0, 0, 0xcc, 0x48, 0x8d, 0x64, 0x24, 8, 0xff, 0x35, distance, 0, 0, 0
#define RETURN(length) length, 0x10, 0x40, 0, 0, 0, 0, 0 /* ADDRESS + length */

Test(displace, forms_after_the_move)
{
    /* jmp +2; je +2; jne rel32; jrcxz +2 */
    expect_moved(BYTES(0xeb, 2), BYTES(0xe9, 0xff, 0xef, 0xff, 0xff));
    expect_moved(BYTES(0x74, 2), BYTES(0x0f, 0x84, 0xfe, 0xef, 0xff, 0xff));
    expect_moved(BYTES(0x0f, 0x85, 2, 0, 0, 0), BYTES(0x0f, 0x85, 2, 0xf0, 0xff, 0xff));
    expect_moved(BYTES(0xe3, 2), BYTES(0xe3, 2, 0xeb, 5, 0xe9, 0xfb, 0xef, 0xff, 0xff));
    /* call +16; call *%rax; call *0x10(%rip): a push of the address behind the original, a jump, that address
     */
    expect_moved(BYTES(0xe8, 16, 0, 0, 0), BYTES(PUSH(5), 0xe9, 0xff, 0xef, 0xff, 0xff, RETURN(5)));
    expect_moved(BYTES(0xff, 0xd0), BYTES(PUSH(2), 0xff, 0xe0, RETURN(2)));
    expect_moved(BYTES(0xff, 0x15, 16, 0, 0, 0),
                 BYTES(PUSH(6), 0xff, 0x25, 0xff, 0xef, 0xff, 0xff, RETURN(6)));
}

/* The displacement is found in every encoding, and only there. */
Test(displace, operands_relative_to_rip)
{
    static const struct {
        uint8_t length, at, code[15]; /* at: of the displacement; 0: none */
    } forms[] = {
        {7, 3, {0x48, 0x8b, 0x05, 1}},                    /* mov */
        {7, 2, {0x80, 0x3d, 1, 0, 0, 0, 5}},              /* cmpb $5 */
        {10, 2, {0xc7, 0x05, 1, 0, 0, 0, 5}},             /* movl $5 */
        {7, 3, {0x0f, 0xb6, 0x05, 1}},                    /* movzbl */
        {9, 5, {0x66, 0x0f, 0x38, 0, 0x05, 1}},           /* pshufb */
        {10, 5, {0x66, 0x0f, 0x3a, 0x0f, 0x05, 1}},       /* palignr */
        {8, 4, {0xc5, 0xfa, 0x6f, 0x05, 1}},              /* vmovdqu */
        {9, 5, {0xc4, 0xe2, 0x7d, 0x58, 0x05, 1}},        /* vpbroadcastd */
        {10, 6, {0x62, 0xf1, 0x7d, 0x48, 0x6f, 0x05, 1}}, /* vmovdqa32 */
        {10, 6, {0xf2, 0x4c, 0x0f, 0x38, 0xf1, 0x05, 1}}, /* crc32 */
        {8, 0, {0x48, 0x8b, 0x04, 0x25, 1}},              /* mov 1, %rax: absolute */
        {7, 0, {0x48, 0x8b, 0x85, 1}},                    /* mov 1(%rbp), %rax */
        {10, 0, {0x48, 0xb8, 5, 5, 5, 5, 5, 5, 5, 5}},    /* movabs */
        {5, 0, {0xb8, 5, 5, 5, 5}},                       /* mov $..., %eax */
        {3, 0, {0xc5, 0xf8, 0x77}},                       /* vzeroupper */
    };

    for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
        uint8_t moved[RELOCATED_BYTES], expected[15];
        int32_t distance = 1 - 0x100;

        memcpy(expected, forms[i].code, forms[i].length);
        if (forms[i].at)
            memcpy(expected + forms[i].at, &distance, sizeof(distance));
        cr_assert_eq(move(forms[i].code, forms[i].length, ADDRESS + 0x100, moved), forms[i].length, "%zu", i);
        cr_expect_arr_eq(moved, expected, forms[i].length, "%zu", i);
        cr_expect_eq(move(forms[i].code, forms[i].length, ADDRESS + 0x100000000, moved),
                     forms[i].at ? -ERANGE : forms[i].length, "%zu", i);
    }
}
