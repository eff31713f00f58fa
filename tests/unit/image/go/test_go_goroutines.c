/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where the list of goroutines is and how frames are walked, in a table by hand; the versions of Go
 * themselves are tried by tests/e2e/stat_live.sh. */
#include <criterion/criterion.h>
#include <errno.h>

#include "image/go/go_goroutines.h"
#include "tests/unit/image/built.h"

/* runtime.allgadd appends to a slice; beside it are words that are not one. The other functions: one with a
 * frame that grows, one that nobody calls, one that switches stacks. */
static const char code[] =
    ".text\n"
    ".globl _start\n"
    ".p2align 5,0xcc\n"
    "_start:\n" /* runtime.allgadd */
    "mov other(%rip), %rax\n"
    "mov list+16(%rip), %rcx\n"
    "mov list+8(%rip), %rbx\n"
    "mov list(%rip), %rax\n"
    "mov %rax, list(%rip)\n"
    "mov other+32(%rip), %rax\n"
    "ret\n"
    ".p2align 5,0xcc\n"
    "grows: push %rbp; nop; nop; nop; sub $16,%rsp; nop; ret\n"
    ".p2align 5,0xcc\n"
    "top: nop; ret\n"
    ".p2align 5,0xcc\n"
    "switches: nop; ret\n"
    ".p2align 5,0xcc\n"
    "end:\n"
    ".data\n"
    "other: .quad 0, 0, 0, 0, 0\n"
    "list: .quad 0, 0, 0\n"
    ".section .go.buildinfo,\"a\"\n"
    ".byte 0\n"
    ".section .gopclntab,\"a\"\n"
    ".p2align 5\n"
    "tab: .long 0xfffffff1\n"
    ".byte 0,0,1,8\n"
    ".quad 4, 1, _start, names-tab, cu-tab, files-tab, pcs-tab, funcs-tab\n"
    "names: .asciz \"runtime.allgadd\"\n"
    "n1: .asciz \"main.grows\"\n"
    "n2: .asciz \"runtime.goexit\"\n"
    "n3: .asciz \"runtime.mcall\"\n"
    "cu: .long 0\n"
    "files: .asciz \"a.go\"\n"
    "pcs: .byte 0\n"
    "flat: .byte 2,32, 0\n"              /* 0 */
    "grown: .byte 2,1, 16,7, 32,24, 0\n" /* 0, 8, 24 */
    ".p2align 3\n"
    "funcs: .long 0, r0-funcs, grows-_start, r1-funcs, top-_start, r2-funcs\n"
    ".long switches-_start, r3-funcs, end-_start\n"
    "r0: .long 0, 0, 0,0, flat-pcs, 0, 0, 0, 0, 1\n.byte 0,0,0,0\n"
    "r1: .long grows-_start, n1-names, 0,0, grown-pcs, 0, 0, 0, 0, 1\n.byte 0,0,0,0\n"
    "r2: .long top-_start, n2-names, 0,0, flat-pcs, 0, 0, 0, 0, 1\n.byte 0,1,0,0\n"
    "r3: .long switches-_start, n3-names, 0,0, flat-pcs, 0, 0, 0, 0, 1\n.byte 0,2,0,0\n";

static struct elf_image *build(void)
{
    built_write("list.s", code);
    built_run("gcc -nostdlib -static -o list list.s");
    return built_open("list");
}

static uint64_t address_of(struct elf_image *image, const char *name)
{
    CLEANUP(functions_release) struct functions functions = built_functions(image);
    const struct image_function *found = functions_named(&functions, name);

    cr_assert(found, "%s", name);
    return found->address;
}

Test(go_goroutines, the_list_is_what_is_appended_to)
{
    AUTO_ELF_IMAGE struct elf_image *image = build();
    uint64_t list;

    cr_assert_eq(go_goroutines_find(image, &list), 0);
    built_run("test $(nm list | awk '$3 == \"list\" { print $1 }') = %016lx", (unsigned long)list);
}

Test(go_goroutines, frames_have_the_size_of_their_instruction)
{
    AUTO_ELF_IMAGE struct elf_image *image = build();
    uint64_t grows = address_of(image, "main.grows"), size;

    cr_assert_eq(go_stack_rule(image, grows, &size), GO_STACK_CALLER);
    cr_assert_eq(size, 0);
    cr_assert_eq(go_stack_rule(image, grows + 1, &size), GO_STACK_CALLER);
    cr_assert_eq(size, 8);
    cr_assert_eq(go_stack_rule(image, grows + 8, &size), GO_STACK_CALLER);
    cr_assert_eq(size, 24);
}

Test(go_goroutines, not_all_functions_have_callers)
{
    AUTO_ELF_IMAGE struct elf_image *image = build();
    uint64_t size;

    cr_assert_eq(go_stack_rule(image, address_of(image, "runtime.goexit"), &size), GO_STACK_TOP);
    cr_assert_eq(go_stack_rule(image, address_of(image, "runtime.mcall"), &size), GO_STACK_SWITCHES);
    cr_assert_eq(go_stack_rule(image, 8, &size), GO_STACK_UNKNOWN);
}

Test(go_goroutines, other_programs_have_no_list)
{
    AUTO_ELF_IMAGE struct elf_image *image = NULL;
    uint64_t list, size;

    built_write("c.c", "int main(void) { return 0; }\n");
    built_run("gcc -o c c.c");
    image = built_open("c");
    cr_assert_eq(go_goroutines_find(image, &list), -ENOENT);
    cr_assert_eq(go_stack_rule(image, address_of(image, "main"), &size), GO_STACK_UNKNOWN);
}
