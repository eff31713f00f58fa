/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Functions of Go programs: what three toolchains build, stripped, against the symbols that they had. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "tests/unit/image/built.h"

static const char go_source[] =
    "package main\n"
    "\n"
    "type T struct{ n int }\n"
    "\n"
    "func add(a, b int) int {\n"
    "\treturn a + b\n"
    "}\n"
    "\n"
    "//go:noinline\n"
    "func (t *T) Method(x int) int { t.n = add(t.n, x); return t.n }\n"
    "\n"
    "//go:noinline\n"
    "func first(t *T) int {\n"
    "\treturn add(t.n, 1)\n"
    "}\n"
    "\n"
    "func main() {\n"
    "\tt := &T{}\n"
    "\tprintln(t.Method(3), first(t))\n"
    "}\n";

/* Builds `go`, and `bare`, which is the same without symbols and sections that name things. */
static void build(const char *version, const char *flags)
{
    built_write("main.go", go_source);
    built_write("go.mod", "module hello\n\ngo 1.19\n");
    built_run(
        "export GOCACHE=$PWD/cache GOPATH=$PWD/path GOFLAGS=-mod=mod GOTOOLCHAIN=local GOENV=off "
        "GO111MODULE=on GOPROXY=off; /usr/lib/go-%s/bin/go build -ldflags=-w %s -o go . && strip -s -o bare "
        "go; "
        "r=$?; chmod -R u+w cache path 2>/dev/null; exit $r",
        version, flags);
}

static void expect_source(struct elf_image *image, const struct functions *functions, const char *name,
                          unsigned line)
{
    const struct image_function *function = functions_named(functions, name);
    const char *file;
    unsigned found;

    cr_assert_not_null(function, "%s", name);
    cr_assert(image_function_source(image, function, &file, &found), "%s", name);
    cr_expect_str_eq(strrchr(file, '/') ? strrchr(file, '/') + 1 : file, "main.go");
    cr_expect_eq(found, line, "%s is said to be in line %u", name, found);
}

/* Symbols are functions unless they only delimit the text or are the linker's build id. */
static bool counts(const struct image_function *symbol)
{
    return symbol->source == IMAGE_SOURCE_SYMTAB && strncmp(symbol->name, "go:", 3) != 0 &&
           strncmp(symbol->name, "go.build", 8) != 0 && !(symbol->flags & IMAGE_FUNCTION_SIZE_GUESSED) &&
           strcmp(symbol->name, "runtime.text") != 0 && strcmp(symbol->name, "runtime.etext") != 0;
}

static void compare_with_stripped(const char *version, const char *flags)
{
    size_t wanted = 0, met = 0;

    build(version, flags);
    AUTO_ELF_IMAGE struct elf_image *whole = built_open("go"), *bare = built_open("bare");
    AUTO_FUNCTIONS struct functions truth = built_functions(whole), found = built_functions(bare);
    for (size_t i = 0; i < truth.count; i++) {
        const struct image_function *symbol = &truth.items[i];
        const struct image_function *function = functions_at(&found, symbol->address);
        size_t length = strcspn(symbol->name, "[");

        if (!counts(symbol))
            continue;
        wanted++;
        if (!function)
            continue;
        met++;
        cr_expect_eq(function->source, IMAGE_SOURCE_GOPCLNTAB);
        if (!strstr(symbol->name, ".abi") && strncmp(symbol->name, "type", 4) != 0)
            cr_expect_eq(strncmp(function->name, symbol->name, length), 0, "%s is called %s", symbol->name,
                         function->name);
        cr_expect_leq(function->size, symbol->size, "%s", symbol->name);
    }
    cr_expect_gt(wanted, 1000);
    cr_expect_geq(met * 1000, wanted * 999, "%zu of %zu functions of go %s %s", met, wanted, version, flags);
    expect_source(bare, &found, "main.(*T).Method", 10);
    expect_source(bare, &found, "main.main", 17);
    expect_source(whole, &truth, "main.main", 17);
    cr_expect_null(functions_named(&found, "main.first")->demangled);
}

Test(gopclntab, go_1_19)
{
    compare_with_stripped("1.19", "");
}

Test(gopclntab, go_1_22_position_independent)
{
    compare_with_stripped("1.22", "-buildmode=pie");
}

/* Since go 1.26 the header does not tell where the text begins. */
static void forget_text_start(void)
{
    static const uint8_t magic[] = {0xf1, 0xff, 0xff, 0xff, 0, 0, 1, 8};
    static uint8_t bytes[8 << 20];
    const uint64_t nothing = 0;
    char path[PATH_MAX];
    const uint8_t *header;
    ssize_t size;

    snprintf(path, sizeof(path), "%s/bare", built_folder());
    AUTO_CLOSE int fd = open(path, O_RDWR | O_CLOEXEC);
    size = pread(fd, bytes, sizeof(bytes), 0);
    cr_assert_gt(size, 0);
    header = memmem(bytes, (size_t)size, magic, sizeof(magic));
    cr_assert_not_null(header);
    cr_assert_eq(pwrite(fd, &nothing, 8, header - bytes + 24), 8);
}

Test(gopclntab, go_1_23)
{
    size_t count;

    compare_with_stripped("1.23", "");
    AUTO_ELF_IMAGE struct elf_image *bare = built_open("bare");
    AUTO_FUNCTIONS struct functions before = built_functions(bare);
    count = before.count;
    /* first() begins with add(), which was inlined: the line is its own all the same. */
    expect_source(bare, &before, "main.first", 13);
    forget_text_start();
    AUTO_ELF_IMAGE struct elf_image *without = built_open("bare");
    AUTO_FUNCTIONS struct functions after = built_functions(without);
    cr_expect_eq(after.count, count);
    /* Without section names the table is found by its magic number. */
    built_run("objcopy --rename-section .gopclntab=.rodata.x bare");
    AUTO_ELF_IMAGE struct elf_image *nameless = built_open("bare");
    AUTO_FUNCTIONS struct functions still = built_functions(nameless);
    cr_expect_eq(still.count, count);
    expect_source(nameless, &still, "main.main", 17);
}

/* ---------------------------------------------------------------------------------------------- by hand */

/* Two functions, and the tables of toolchains that are not at hand, as their linkers lay them out. */
static const char two_functions[] =
    ".text\n"
    ".globl _start\n"
    ".p2align 5,0xcc\n"
    "_start: ret\n"
    ".p2align 5,0xcc\n"
    "b: ret\n"
    ".p2align 5,0xcc\n"
    "end:\n"
    ".section .go.buildinfo,\"a\"\n"
    ".byte 0\n"
    ".section .gopclntab,\"a\"\n"
    ".p2align 5\n";

static const char table_1_2[] =
    "tab: .long 0xfffffffb\n"
    ".byte 0,0,1,8\n"
    ".quad 2\n"
    ".quad _start, fa-tab, b, fb-tab, end\n"
    ".long files-tab\n"
    "na: .asciz \"main.a\"\n"
    "nb: .asciz \"main.b\"\n"
    "fn: .asciz \"a.go\"\n"
    ".p2align 2\n"
    "files: .long 2, fn-tab\n"
    "pf: .byte 4,32,0\n"
    "pl: .byte 20,32,0\n"
    ".p2align 2\n"
    "fa: .quad _start\n"
    ".long na-tab, 0,0,0, pf-tab, pl-tab, 0, 0\n"
    "fb: .quad b\n"
    ".long nb-tab, 0,0,0, pf-tab, pl-tab, 0, 0\n";

static const char table_1_16[] =
    "tab: .long 0xfffffffa\n"
    ".byte 0,0,1,8\n"
    ".quad 2, 1, names-tab, cu-tab, files-tab, pcs-tab, funcs-tab\n"
    "names: .asciz \"main.a\"\n"
    "nb: .asciz \"main.b\"\n"
    "cu: .long 0\n"
    "files: .asciz \"a.go\"\n"
    "pcs: .byte 0\n"
    "pf: .byte 2,32,0\n"
    "pl: .byte 20,32,0\n"
    ".p2align 2\n"
    "funcs: .quad _start, fa-funcs, b, fb-funcs, end\n"
    "fa: .quad _start\n"
    ".long names-names, 0,0,0, pf-pcs, pl-pcs, 0, 0\n"
    ".byte 0,0,0,0\n"
    "fb: .quad b\n"
    ".long nb-names, 0,0,0, pf-pcs, pl-pcs, 0, 0\n"
    ".byte 0,0,0,0\n";

static const char table_1_18[] =
    "tab: .long 0xfffffff0\n"
    ".byte 0,0,1,8\n"
    ".quad 2, 1, _start, names-tab, cu-tab, files-tab, pcs-tab, funcs-tab\n"
    "names: .asciz \"main.a\"\n"
    "nb: .asciz \"main.b\"\n"
    "cu: .long 0\n"
    "files: .asciz \"a.go\"\n"
    "pcs: .byte 0\n"
    "pf: .byte 2,32,0\n"
    "pl: .byte 20,32,0\n"
    ".p2align 2\n"
    "funcs: .long 0, fa-funcs, b-_start, fb-funcs, end-_start\n"
    "fa: .long 0, names-names, 0,0,0, pf-pcs, pl-pcs, 0, 0\n"
    ".byte 0,0,0,0\n"
    "fb: .long b-_start, nb-names, 0,0,0, pf-pcs, pl-pcs, 0, 0\n"
    ".byte 0,0,0,0\n";

static const char table_1_20[] =
    "tab: .long 0xfffffff1\n"
    ".byte 0,0,1,8\n"
    ".quad 2, 1, _start, names-tab, cu-tab, files-tab, pcs-tab, funcs-tab\n"
    "names: .asciz \"main.a\"\n"
    "nb: .asciz \"main.b\"\n"
    "cu: .long 0\n"
    "files: .asciz \"a.go\"\n"
    "pcs: .byte 0\n"
    "pf: .byte 2,32,0\n"
    "pl: .byte 20,32,0\n"
    ".p2align 2\n"
    "funcs: .long 0, fa-funcs, b-_start, fb-funcs, end-_start\n"
    "fa: .long 0, names-names, 0,0,0, pf-pcs, pl-pcs, 0, 0, 7\n"
    ".byte 0,0,0,0\n"
    "fb: .long b-_start, nb-names, 0,0,0, pf-pcs, pl-pcs, 0, 0, 9\n"
    ".byte 0,0,0,0\n";

static void expect_layout(const char *table, unsigned line)
{
    const char *file;
    unsigned found;

    built_write("functions.s", two_functions);
    built_write("table.s", table);
    built_run("cat functions.s table.s >whole.s && gcc -nostdlib -static -o whole whole.s && strip -s whole");
    AUTO_ELF_IMAGE struct elf_image *image = built_open("whole");
    AUTO_FUNCTIONS struct functions functions = built_functions(image);
    cr_assert_eq(functions.count, 2);
    cr_expect_str_eq(functions.items[0].name, "main.a");
    cr_expect_str_eq(functions.items[1].name, "main.b");
    cr_expect_eq(functions.items[0].flags, IMAGE_FUNCTION_ENTRY_POINT);
    cr_expect_eq(functions.items[0].size, 1, "what fills up to the next function is none of its code");
    cr_assert(image_function_source(image, &functions.items[0], &file, &found));
    cr_expect_str_eq(file, "a.go");
    cr_expect_eq(found, line);
}

Test(gopclntab, layouts)
{
    expect_layout(table_1_2, 9);
    expect_layout(table_1_16, 9);
    expect_layout(table_1_18, 9);
    expect_layout(table_1_20, 7);
}

Test(gopclntab, entries_that_are_no_code_make_no_functions)
{
    built_write("functions.s", two_functions);
    built_write("table.s", table_1_16);
    built_run(
        "sed -e '/^funcs:/s/_start,/_start+1,/; /^funcs:/s/ b,/ b+1,/' table.s >wrong.s && "
        "cat functions.s wrong.s >whole.s && gcc -nostdlib -static -o whole whole.s && strip -s whole");
    AUTO_ELF_IMAGE struct elf_image *image = built_open("whole");
    AUTO_FUNCTIONS struct functions functions = built_functions(image);
    cr_expect_eq(functions.count, 0);
}
