/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Inline trees as the linkers of go 1.17, 1.18 and 1.20 lay them out, by hand: main.a, whose second
 * instruction was inlined from main.c, which was inlined from main.b.
 */
#include <criterion/criterion.h>

#include "image/functions/gopclntab.h"
#include "tests/unit/image/built.h"

/* Four bytes of nop, then four that were inlined, then four of its own. Files: a.go, b.go, c.go. */
static const char code[] =
    ".text\n"
    ".globl _start\n"
    ".p2align 5,0xcc\n"
    "_start: nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; ret\n"
    ".p2align 5,0xcc\n"
    "b: ret\n"
    ".p2align 5,0xcc\n"
    "end:\n"
    ".section .go.buildinfo,\"a\"\n"
    ".byte 0\n"
    ".section .gopclntab,\"a\"\n"
    ".p2align 5\n";

/* Distances 0-4, 4-8, 8-12. The call of main.b has line 12 of a.go, as has the instruction at 0; that of
 * main.c has line 22 of b.go, as has the one at 8; what is inlined is line 32 of c.go. */
#define PARTS \
    "names: .asciz \"main.a\"\n" \
    "nb: .asciz \"main.b\"\n" \
    "nc: .asciz \"main.c\"\n" \
    "cu: .long fa-files, fb-files, fc-files\n" \
    "files:\n" \
    "fa: .asciz \"a.go\"\n" \
    "fb: .asciz \"b.go\"\n" \
    "fc: .asciz \"c.go\"\n" \
    "pcs: .byte 0\n" \
    "pf: .byte 2,4, 4,4, 1,4, 0\n"    /* 0, 2, 1 */ \
    "pl: .byte 26,4, 40,4, 19,4, 0\n" /* 12, 32, 22 */ \
    "pi: .byte 0,4, 4,4, 1,4, 0\n"    /* -1, 1, 0 */ \
    ".p2align 3\n"

static const char table_1_17[] =
    "tab: .long 0xfffffffa\n"
    ".byte 0,0,1,8\n"
    ".quad 2, 3, names-tab, cu-tab, files-tab, pcs-tab, funcs-tab\n" PARTS
    "funcs: .quad _start, ra-funcs, b, rb-funcs, end\n"
    ".p2align 3\n"
    "ra: .quad _start\n"
    ".long 0, 0,0,0, pf-pcs, pl-pcs, 3, 0\n"
    ".byte 0,0,0,4\n"
    ".long 0, 0, pi-pcs\n"
    ".p2align 3\n"
    ".quad 0, 0, 0, tree\n"
    "rb: .quad b\n"
    ".long nb-names, 0,0,0, pf-pcs, pl-pcs, 0, 0\n"
    ".byte 0,0,0,0\n"
    ".section .rodata,\"a\"\n"
    "tree: .short -1; .byte 0,0; .long 0, 12, nb-names, 0\n"
    ".short 0; .byte 0,0; .long 1, 22, nc-names, 8\n";

#define FUNCTIONS_1_18(line) \
    "funcs: .long 0, ra-funcs, b-_start, rb-funcs, end-_start\n" \
    "ra: .long 0, 0, 0,0,0, pf-pcs, pl-pcs, 3, 0 " line \
    "\n" \
    ".byte 0,0,0,4\n" \
    ".long 0, 0, pi-pcs\n" \
    ".long -1, -1, -1, tree-base\n" \
    "rb: .long b-_start, nb-names, 0,0,0, pf-pcs, pl-pcs, 0, 0 " line \
    "\n" \
    ".byte 0,0,0,0\n" \
    ".section .rodata,\"a\"\n" \
    "base: .quad 0x1234567890abcdef\n"

/* Words that mean nothing, and the one that funcdata are relative to. */
#define MODULEDATA \
    ".data\n" \
    ".p2align 3\n" \
    ".quad tab, 1\n" /* not moduledata: the names do not follow */ \
    ".quad tab, names, 5, 5, cu, 4, 4, _start, end, tab, base, 0, 0\n" \
    ".fill 80, 8, 0\n"

static const char table_1_18[] =
    "tab: .long 0xfffffff0\n"
    ".byte 0,0,1,8\n"
    ".quad 2, 3, _start, names-tab, cu-tab, files-tab, pcs-tab, funcs-tab\n" PARTS FUNCTIONS_1_18("")
    "tree: .short -1; .byte 0,0; .long 0, 12, nb-names, 0\n"
    ".short 0; .byte 0,0; .long 1, 22, nc-names, 8\n" MODULEDATA;

static const char table_1_20[] =
    "tab: .long 0xfffffff1\n"
    ".byte 0,0,1,8\n"
    ".quad 2, 3, _start, names-tab, cu-tab, files-tab, pcs-tab, funcs-tab\n" PARTS FUNCTIONS_1_18(", 7")
    "tree: .byte 0,0,0,0; .long nb-names, 0, 20\n"
    ".byte 0,0,0,0; .long nc-names, 8, 30\n" MODULEDATA;

static void expect_frame(const struct go_frame *frame, const char *function, const char *file, unsigned line)
{
    cr_expect_str_eq(frame->function, function);
    cr_expect_str_eq(frame->file, file);
    cr_expect_eq(frame->line, line, "%s is in line %u", function, frame->line);
}

static void expect_frames(const char *table, const char *link)
{
    struct go_frame frames[4];

    built_write("code.s", code);
    built_write("table.s", table);
    built_run("cat code.s table.s >whole.s && gcc -nostdlib %s -o whole whole.s && strip -s whole", link);
    AUTO_ELF_IMAGE struct elf_image *image = built_open("whole");
    struct go_symbol *symbols = NULL;
    size_t count = 0;
    cr_assert_eq(gopclntab_symbols(image, &symbols, &count), 0);
    uint64_t entry = symbols[0].address;
    cr_assert_eq(count, 2);
    cr_expect_str_eq(symbols[1].name, "main.b");
    free(symbols);

    cr_assert_eq(gopclntab_frames(image, entry + 1, frames, 4), 1);
    expect_frame(&frames[0], "main.a", "a.go", 12);
    cr_assert_eq(gopclntab_frames(image, entry + 5, frames, 4), 3);
    expect_frame(&frames[0], "main.c", "c.go", 32);
    expect_frame(&frames[1], "main.b", "b.go", 22);
    expect_frame(&frames[2], "main.a", "a.go", 12);
    cr_assert_eq(gopclntab_frames(image, entry + 5, frames, 2), 2, "no more than there is room for");
    cr_assert_eq(gopclntab_frames(image, entry + 9, frames, 4), 2);
    expect_frame(&frames[0], "main.b", "b.go", 22);
    cr_expect_eq(gopclntab_frames(image, entry - 1, frames, 4), 0);
    cr_expect_eq(gopclntab_frames(image, entry + 4096, frames, 4), 0);
}

Test(go_inline, go_1_17)
{
    expect_frames(table_1_17, "-static");
}

Test(go_inline, go_1_18)
{
    expect_frames(table_1_18, "-static");
}

Test(go_inline, go_1_20)
{
    expect_frames(table_1_20, "-static");
}

/* Pointers are filled in by relocations, the tables are in writable data. */
Test(go_inline, go_1_20_position_independent)
{
    expect_frames(table_1_20, "-static-pie -Wl,-z,notext");
}

Test(go_inline, go_1_17_position_independent)
{
    expect_frames(table_1_17, "-static-pie -Wl,-z,notext");
}
