/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which functions of the source an instruction belongs to, in programs that the real compiler made. */
#include <criterion/criterion.h>
#include <string.h>

#include "image/arch/disasm.h"
#include "image/source/source_frames.h"
#include "tests/unit/image/built.h"

static const char source[] =
    "int seen(int);\n"                                                                  /* 1 */
    "static inline __attribute__((always_inline)) int inner(int x)\n"                   /* 2 */
    "{\n"                                                                               /* 3 */
    "    return seen(x) + 1;\n"                                                         /* 4 */
    "}\n"                                                                               /* 5 */
    "static inline __attribute__((always_inline)) int middle(int x)\n"                  /* 6 */
    "{\n"                                                                               /* 7 */
    "    if (x > 3) {\n"                                                                /* 8 */
    "        int y = x * 2;\n"                                                          /* 9 */
    "        return inner(y);\n"                                                        /* 10 */
    "    }\n"                                                                           /* 11 */
    "    return 0;\n"                                                                   /* 12 */
    "}\n"                                                                               /* 13 */
    "__attribute__((noinline)) int outer(int x)\n"                                      /* 14 */
    "{\n"                                                                               /* 15 */
    "    return middle(x) * 3;\n"                                                       /* 16 */
    "}\n"                                                                               /* 17 */
    "__attribute__((noinline)) int seen(int x) { __asm__ volatile(\"\"); return x; }\n" /* 18 */
    "int main(int argc, char **argv) { return outer(argc); }\n";                        /* 19 */

/* The call instruction in `function`; the program's only one there. */
static uint64_t call_in(struct elf_image *image, const char *function)
{
    CLEANUP(functions_release) struct functions functions = built_functions(image);
    const struct image_function *found = functions_named(&functions, function);
    size_t available, at = 0;
    const uint8_t *code;

    cr_assert(found);
    code = elf_image_code(image, found->address, &available);
    while (at < found->size) {
        struct instruction instruction;

        cr_assert_eq(disasm_skim(code + at, available - at, found->address + at, &instruction), 0);
        if (instruction.kind == INSTRUCTION_CALL)
            return instruction.address;
        at += instruction.length;
    }
    cr_assert(false, "%s calls nothing", function);
    return 0;
}

static void expect(const struct source_frame *frame, const char *function, unsigned line)
{
    cr_assert(frame->function);
    cr_assert_str_eq(frame->function, function);
    cr_assert(frame->file && strstr(frame->file, "inlined.c"), "%s", frame->file ? frame->file : "no file");
    cr_assert_eq(frame->line, line, "%s: line %u, not %u", function, frame->line, line);
}

static void expect_frames(struct elf_image *image)
{
    struct source_frame frames[8];

    cr_assert_eq(image_source_frames(image, call_in(image, "outer"), frames, 8), 3);
    expect(&frames[0], "outer", 16);
    expect(&frames[1], "middle", 10);
    expect(&frames[2], "inner", 4);
    cr_assert_eq(image_source_frames(image, call_in(image, "outer"), frames, 2), 2,
                 "as many as there is room");
    expect(&frames[1], "middle", 10);
}

Test(source_frames, inlined_functions_stand_in_their_callers)
{
    AUTO_ELF_IMAGE struct elf_image *image = NULL;
    struct source_frame frames[8];

    built_write("inlined.c", source);
    built_run("gcc -g -O2 -fno-optimize-sibling-calls -o inlined inlined.c");
    image = built_open("inlined");
    expect_frames(image);
    cr_assert_eq(image_source_frames(image, call_in(image, "main"), frames, 8), 1);
    expect(&frames[0], "main", 19);
    cr_assert_eq(image_source_frames(image, 0, frames, 8), 0, "no code there");
    cr_assert_eq(image_source_frames(image, 0, frames, 0), 0);
}

Test(source_frames, older_debug_information)
{
    AUTO_ELF_IMAGE struct elf_image *image = NULL;

    built_write("inlined.c", source);
    built_run("gcc -gdwarf-4 -O2 -fno-optimize-sibling-calls -o inlined4 inlined.c");
    image = built_open("inlined4");
    expect_frames(image);
}

Test(source_frames, separate_debug_files)
{
    AUTO_ELF_IMAGE struct elf_image *image = NULL;

    built_write("inlined.c", source);
    built_run(
        "gcc -g -O2 -fno-optimize-sibling-calls -o whole inlined.c && objcopy --only-keep-debug whole "
        "split.debug && objcopy --strip-all --keep-symbol=outer --add-gnu-debuglink=split.debug whole split");
    image = built_open("split");
    expect_frames(image);
}

Test(source_frames, nothing_is_known_of_stripped_programs)
{
    AUTO_ELF_IMAGE struct elf_image *image = NULL;
    struct source_frame frames[8];

    built_write("inlined.c", source);
    built_run("gcc -O2 -o plain inlined.c");
    image = built_open("plain");
    cr_assert_eq(image_source_frames(image, call_in(image, "outer"), frames, 8), 0);
}
