/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Operations as go 1.24 and 1.25 compile them, which are not at hand, by hand: sync.(*Mutex).Lock is inlined
 * with internal/sync.(*Mutex).Lock in it, and so is sync.(*WaitGroup).Go. What is refused and why.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "image/go/go_layout.h"
#include "image/go/go_usage.h"
#include "tests/unit/image/built.h"

#define VERSION_FOR_TEST "go1.25.1"

static const char program[] =
    ".macro function label\n"
    ".p2align 5,0xcc\n"
    "\\label:\n"
    ".endm\n"
    ".text\n"
    ".globl _start\n"
    "function _start\n" /* main.f */
    "mov %rax,%rcx\n"
    "xor %eax,%eax\n"
    "mov $1,%esi\n"
    "lock cmpxchg %esi,0x20(%rcx)\n"
    "sete %dil\n"
    "test %dil,%dil\n"
    "f1: jne f3\n"
    "f2: mov %rdx,%rax\n"
    "call2: call lock_slow\n"
    "f3: lea value(%rip),%rax\n"
    "f4: call newproc\n"
    "f5: call add\n"
    "f6: lea 16(%rsp),%rax\n"
    "mov %rcx,16(%rsp)\n"
    "mov %rcx,32(%rsp)\n"
    "mov $1,%edi\n"
    "mov %edi,%esi\n"
    "xor %r8d,%r8d\n"
    "lea 16(%rsp),%rax\n"
    "f7: call selectgo\n"
    "ret\n"
    "function g\n"
    "call lock_slow\n" /* not inlined from Lock: no operation */
    "ret\n"
    "function gopark\n"
    "ret\n"
    "function lock_slow\n"
    "ret\n"
    "function newproc_wrapper\n" /* of the same name, and first */
    "nop\n"
    "call newproc\n"
    "ret\n"
    "function newproc\n"
    "ret\n"
    "function add\n"
    "ret\n"
    "function selectgo\n"
    "ret\n"
    "function end\n"
    ".section .go.buildinfo,\"aw\"\n"
    ".p2align 4\n"
    ".ascii \"\\377 Go buildinf:\"\n"
    ".byte 8, 2\n"
    ".fill 16, 1, 0\n"
    ".byte 8\n"
    ".ascii \"" VERSION_FOR_TEST
    "\"\n"
    ".section .rodata,\"a\"\n"
    "base: .quad 0x1234567890abcdef\n"
    "value: .quad g\n"
    "tree: .byte 0,0,0,0; .long n_lock-names, f1-_start, 20\n"
    ".byte 0,0,0,0; .long n_inner-names, f2-_start, 20\n"
    ".byte 0,0,0,0; .long n_go-names, f3-_start, 20\n"
    ".section .gopclntab,\"a\"\n"
    ".p2align 5\n"
    "tab: .long 0xfffffff1\n"
    ".byte 0,0,1,8\n"
    ".quad 8, 1, _start, names-tab, cu-tab, files-tab, pcs-tab, funcs-tab\n"
    "names: .asciz \"main.f\"\n"
    "n_g: .asciz \"main.g\"\n"
    "n_park: .asciz \"runtime.gopark\"\n"
    "n_slow: .asciz \"internal/sync.(*Mutex).lockSlow\"\n"
    "n_newproc: .asciz \"runtime.newproc\"\n"
    "n_add: .asciz \"sync.(*WaitGroup).Add\"\n"
    "n_select: .asciz \"runtime.selectgo\"\n"
    "n_lock: .asciz \"sync.(*Mutex).Lock\"\n"
    "n_inner: .asciz \"internal/sync.(*Mutex).Lock\"\n"
    "n_go: .asciz \"sync.(*WaitGroup).Go\"\n"
    "cu: .long 0\n"
    "files: .asciz \"f.go\"\n"
    "pcs: .byte 0\n"
    "pf: .byte 2,96, 0\n"
    /* Line 5 up to the lock, 6 up to the select, 7 behind. */
    "pl: .byte 12; .uleb128 f3-_start; .byte 2; .uleb128 f6-f3; .byte 2; .uleb128 64; .byte 0\n"
    "pi: .byte 0; .uleb128 f2-_start; .byte 2; .uleb128 call2-f2; .byte 2; .uleb128 f3-call2; .byte 3; "
    ".uleb128 f4-f3; .byte 6\n"
    ".uleb128 f6-f4; .byte 5; .uleb128 64; .byte 0\n"
    ".p2align 3\n"
    "funcs: .long 0, r_f-funcs, g-_start, r_g-funcs, gopark-_start, r_park-funcs\n"
    ".long lock_slow-_start, r_slow-funcs, newproc_wrapper-_start, r_wrap-funcs\n"
    ".long newproc-_start, r_new-funcs, add-_start, r_add-funcs, selectgo-_start, r_sel-funcs, end-_start\n"
    "r_f: .long 0, 0, 0,0,0, pf-pcs, pl-pcs, 3, 0, 4\n"
    ".byte 0,0,0,4\n"
    ".long 0, 0, pi-pcs\n"
    ".long -1, -1, -1, tree-base\n"
    ".macro record label, code, name\n"
    "\\label: .long \\code-_start, \\name-names, 0,0,0, pf-pcs, pl-pcs, 0, 0, 9\n"
    ".byte 0,0,0,0\n"
    ".endm\n"
    "record r_g, g, n_g\n"
    "record r_park, gopark, n_park\n"
    "record r_slow, lock_slow, n_slow\n"
    "record r_wrap, newproc_wrapper, n_newproc\n"
    "record r_new, newproc, n_newproc\n"
    "record r_add, add, n_add\n"
    "record r_sel, selectgo, n_select\n"
    ".data\n"
    ".p2align 3\n"
    ".quad tab, names, 5, 5, cu, 4, 4, _start, end, tab, base, 0, 0\n"
    ".fill 80, 8, 0\n";

static struct elf_image *build(void)
{
    built_write("program.s", program);
    built_run(
        "gcc -nostdlib -static -Wl,-z,max-page-size=16,-z,common-page-size=16 -o program program.s && strip "
        "-s program");
    return built_open("program");
}

static const struct go_usage *usage_of(const struct go_model *model, enum go_operation operation)
{
    for (size_t i = 0; i < model->count; i++)
        if (model->usages[i].operation == operation)
            return &model->usages[i];
    cr_assert_fail("no %s", go_operation_name(operation));
    return NULL;
}

Test(go_usage, newer_versions)
{
    AUTO_ELF_IMAGE struct elf_image *image = build();
    CLEANUP(go_model_release) struct go_model model = {0};
    const struct go_usage *usage;
    struct error err = {0};

    cr_assert_eq(go_model_read(image, &model, &err), 0, "%s", err.message);
    cr_assert_eq(model.count, 4);
    usage = usage_of(&model, GO_LOCK);
    cr_expect_eq(usage->object, GO_MUTEX);
    cr_expect_str_eq(usage->function, "main.f");
    cr_expect_str_eq(usage->file, "f.go");
    cr_expect_eq(usage->line, 5);
    cr_expect(!usage->standard);
    cr_assert_eq(usage->site_count, 1);
    const struct go_fast_path *fast = &usage->sites[0].fast;
    cr_expect_str_eq(usage->sites[0].callee, "internal/sync.(*Mutex).lockSlow");
    cr_expect_eq(fast->branch + 5, usage->sites[0].address);
    cr_expect_eq(fast->condition, 5);
    cr_expect(!fast->slow_taken && fast->address_kept);
    cr_expect_eq(fast->base, 1);
    cr_expect_eq(fast->displacement, 0x20);

    usage = usage_of(&model, GO_GO);
    cr_expect_eq(usage->line, 6);
    cr_expect_str_eq(usage->function, "main.f");
    cr_expect_str_eq(usage->starts, "main.g");
    cr_expect_eq(usage_of(&model, GO_ADD)->line, 6);

    usage = usage_of(&model, GO_SELECT);
    cr_expect_eq(usage->line, 7);
    cr_expect(!usage->blocks);
    cr_assert_eq(usage->case_count, 2);
    cr_expect(usage->cases[0].send && !usage->cases[1].send);
    cr_expect_eq(usage->cases[0].line, 7);
}

Test(go_usage, the_function_and_not_its_wrapper)
{
    AUTO_ELF_IMAGE struct elf_image *image = build();
    struct go_entry_place entries[GO_ENTRIES];
    struct error err = {0};

    cr_assert_eq(go_entries_read(image, entries, &err), 0);
    cr_expect_eq(entries[GO_NEWPROC].variants, 2);
    cr_expect_eq(entries[GO_NEWPROC].size, 1);
    cr_expect_null(entries[GO_CHANSEND].name);
}

Test(go_usage, layout_without_the_runtime)
{
    AUTO_ELF_IMAGE struct elf_image *image = build();
    CLEANUP(go_layout_release) struct go_layout layout = {0};
    struct error err = {0};

    cr_assert_eq(go_layout_read(image, &layout, &err), -ENOTSUP);
    cr_expect_str_eq(layout.version.text, VERSION_FOR_TEST);
    cr_expect_eq(layout.version.minor, 25);
    cr_expect_not_null(strstr(err.message, "runtime.newproc1"), "%s", err.message);
    cr_expect_not_null(strstr(err.message, VERSION_FOR_TEST), "%s", err.message);
}
