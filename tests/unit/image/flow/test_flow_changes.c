/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which bytes of code the file says will be others in memory. */
#include <criterion/criterion.h>

#include "image/flow/flow_image.h"
#include "tests/unit/image/built.h"

struct code {
    struct elf_image *image;
    struct functions functions;
    struct flow_map *map;
    bool all_taken;
};

static struct code build(const char *source, const char *flags)
{
    struct code code = {0};

    built_write("changes.s", source);
    built_run("gcc -nostdlib %s -o changes changes.s 2>&1", flags);
    code.image = built_open("changes");
    code.functions = built_functions(code.image);
    cr_assert_eq(flow_image_map(code.image, code.functions.items, code.functions.count, &code.map,
                                &code.all_taken, NULL),
                 0);
    return code;
}

static void release(struct code *code)
{
    flow_map_free(code->map);
    functions_release(&code->functions);
    elf_image_free(code->image);
}

/* Bytes [from, to) of the function change, and none beside them. */
static void expect_changes(const struct code *code, const char *function, unsigned from, unsigned to)
{
    const struct image_function *found = functions_named(&code->functions, function);

    for (unsigned at = 0; at < found->size; at++)
        cr_assert_eq(flow_map_has(code->map, found->address + at, FLOW_CHANGES), at >= from && at < to,
                     "byte %u of %s", at, function);
}

#define FUNCTION(name, body) \
    ".globl " name "\n.type " name ", @function\n" name ":\n" body ".size " name ", . - " name "\n"
#define START FUNCTION("_start", "call f\nhlt\n")

Test(flow_changes, none_in_a_program_that_the_linker_leaves_alone)
{
    struct code code = build(START FUNCTION("f", "movl $1, %eax\nret\n"), "-static");

    cr_assert_not(flow_map_has_mark(code.map, FLOW_CHANGES));
    release(&code);
}

Test(flow_changes, what_relocations_fill_in)
{
    struct code code =
        build(START FUNCTION("f", "movabs $g, %rax\nret\n") ".data\ng: .quad 0\n", "-pie -Wl,-z,notext");

    expect_changes(&code, "f", 2, 10);
    cr_assert_not(code.all_taken);
    release(&code);
}

Test(flow_changes, all_of_a_segment_that_is_executable_and_writable)
{
    struct code code =
        build(START ".section .writable, \"awx\", @progbits\n" FUNCTION("f", "nop\nret\n"), "-static");

    expect_changes(&code, "f", 0, 2);
    expect_changes(&code, "_start", 0, 0);
    release(&code);
}

Test(flow_changes, patchable_entries_are_the_no_ops_behind_their_address)
{
    struct code code = build(
        START FUNCTION(
            "f",
            "endbr64\n.byte 0x0f, 0x1f, 0x44, 0, 0\nnop\nret\n") ".section __patchable_function_entries, \"aw\", @progbits\n.quad f\n",
        "-static");

    expect_changes(&code, "f", 4, 10);
    release(&code);
}

Test(flow_changes, calls_that_are_listed_for_mcount)
{
    struct code code =
        build(START FUNCTION("f", "nop\nlisted: call g\nret\n")
                  FUNCTION("g", "ret\n") ".section __mcount_loc, \"a\", @progbits\n.quad listed\n",
              "-static");

    expect_changes(&code, "f", 1, 6);
    release(&code);
}

Test(flow_changes, sleds_of_xray)
{
    struct code code = build(START FUNCTION("f", "sled: jmp 1f\n.fill 9, 1, 0x90\n1: ret\n")
                             ".section xray_instr_map, \"a\", @progbits\n"
                             ".quad sled - .\n.quad f - .\n.byte 0, 1, 2\n.zero 13\n",
                             "-static");

    expect_changes(&code, "f", 0, 11);
    release(&code);
}
