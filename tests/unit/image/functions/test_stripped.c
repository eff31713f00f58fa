/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Functions of stripped programs, against the symbols that they had. */
#include <criterion/criterion.h>
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "base/array.h"
#include "tests/unit/image/built.h"

static const char *const own_functions[] = {"main", "work", "odd", "fail"};

static void build_split(const char *flags)
{
    built_write("split.c", split_source);
    built_run("gcc -O2 -g %s -o split split.c && strip -s -o bare split", flags);
}

/* Every function of the source is found in the stripped copy, with its extent and the image's name. */
static void compare_with_stripped(const char *flags)
{
    build_split(flags);
    AUTO_ELF_IMAGE struct elf_image *split = built_open("split"), *bare = built_open("bare");
    AUTO_FUNCTIONS struct functions truth = built_functions(split), found = built_functions(bare);

    for (size_t i = 0; i < ARRAY_SIZE(own_functions); i++) {
        const struct image_function *symbol = functions_named(&truth, own_functions[i]), *function;
        char name[64];

        cr_assert_not_null(symbol, "%s", own_functions[i]);
        function = functions_at(&found, symbol->address);
        cr_assert_not_null(function, "%s was lost (%s)", own_functions[i], flags);
        snprintf(name, sizeof(name), "bare+0x%" PRIx64, symbol->address);
        cr_expect_str_eq(function->name, name);
        cr_expect_eq(function->size, symbol->size);
        cr_expect_eq(function->file_offset, symbol->file_offset);
        cr_expect_eq(function->flags, IMAGE_FUNCTION_NO_NAME);
        cr_expect_eq(function->source, IMAGE_SOURCE_EH_FRAME);
        cr_expect_eq(symbol->source, IMAGE_SOURCE_SYMTAB);
        cr_expect_null(function->demangled);
    }
}

Test(stripped, functions_keep_their_extents)
{
    compare_with_stripped("-fPIE -pie");
}

Test(stripped, program_that_is_loaded_where_it_was_linked)
{
    compare_with_stripped("-fno-pie -no-pie");
}

/* The part of work() in `functions`, given where it is. */
static void expect_part(const struct functions *functions, uint64_t part, uint64_t owner)
{
    const struct image_function *fragment = functions_at(functions, part);

    cr_assert_not_null(fragment);
    cr_expect(fragment->flags & IMAGE_FUNCTION_FRAGMENT, "%s", fragment->name);
    cr_expect_eq(fragment->part_of, owner);
    cr_expect_eq(image_functions_find(functions->items, functions->count, part), fragment);
    cr_expect_eq(image_functions_owner(functions->items, functions->count, part + fragment->size - 1),
                 functions_at(functions, owner));
    cr_expect_eq(image_functions_owner(functions->items, functions->count, owner + 1),
                 functions_at(functions, owner));
}

Test(stripped, fragments_belong_to_their_function)
{
    build_split("-fPIE -pie");
    AUTO_ELF_IMAGE struct elf_image *split = built_open("split"), *bare = built_open("bare");
    AUTO_FUNCTIONS struct functions truth = built_functions(split), found = built_functions(bare);
    const struct image_function *work = functions_named(&truth, "work"),
                                *part = functions_named(&truth, "work.cold");
    size_t fragments = 0;

    cr_assert(work && part, "gcc made no fragment: the test tests nothing");
    expect_part(&truth, part->address, work->address);
    expect_part(&found, part->address, work->address);
    for (size_t i = 0; i < found.count; i++)
        fragments += (found.items[i].flags & IMAGE_FUNCTION_FRAGMENT) != 0;
    cr_expect_eq(fragments, 1, "a function was taken for a fragment");
}

Test(stripped, functions_that_only_jumps_reach_are_functions)
{
    /* A tail call out of one function only: what a fragment looks like from afar. */
    built_write("tail.s",
                ".text\n.globl _start\n"
                "_start: .cfi_startproc\n call outer\n hlt\n .cfi_endproc\n"
                "outer: .cfi_startproc\n nop\n jmp inner\n .cfi_endproc\n .byte 0xcc\n"
                "inner: .cfi_startproc\n ret\n .cfi_endproc\n"
                "called: .cfi_startproc\n .cfi_def_cfa_offset 32\n call called\n ret\n .cfi_endproc\n"
                "part: .cfi_startproc\n .cfi_def_cfa_offset 32\n ud2\n .cfi_endproc\n");
    built_run("gcc -nostdlib -static -o tail tail.s && nm tail > symbols && strip -s tail");
    AUTO_ELF_IMAGE struct elf_image *image = built_open("tail");
    AUTO_FUNCTIONS struct functions found = built_functions(image);

    cr_assert_eq(found.count, 5);
    for (size_t i = 0; i < 4; i++)
        cr_expect_not(found.items[i].flags & IMAGE_FUNCTION_FRAGMENT, "function %zu", i);
    cr_expect(found.items[4].flags & IMAGE_FUNCTION_FRAGMENT);
    cr_expect_eq(found.items[4].part_of, 0, "nothing jumps there");
    cr_expect_null(image_functions_owner(found.items, found.count, found.items[4].address));
}

Test(stripped, symbols_without_a_size_get_that_of_their_frame)
{
    built_write("sizes.s",
                ".text\n.globl _start\n.type _start,@function\n.type label,@function\n"
                ".type bare,@function\n"
                "_start: .cfi_startproc\n nop\nlabel: nop\n hlt\n .cfi_endproc\n"
                "bare: nop\n"
                "signal: .cfi_startproc\n .cfi_signal_frame\n syscall\n .cfi_endproc\n");
    built_run("gcc -nostdlib -static -o sizes sizes.s");
    AUTO_ELF_IMAGE struct elf_image *image = built_open("sizes");
    AUTO_FUNCTIONS struct functions found = built_functions(image);

    cr_assert_eq(found.count, 3, "%zu functions: signal trampolines are none", found.count);
    cr_expect_eq(found.items[0].size, 3);
    cr_expect_eq(found.items[0].flags, IMAGE_FUNCTION_ENTRY_POINT);
    cr_expect_str_eq(found.items[1].name, "label");
    cr_expect_eq(found.items[1].flags, IMAGE_FUNCTION_INSIDE | IMAGE_FUNCTION_SIZE_GUESSED);
    cr_expect_str_eq(found.items[2].name, "bare");
    cr_expect_eq(found.items[2].flags, IMAGE_FUNCTION_SIZE_GUESSED);
}

Test(stripped, section_headers_are_not_needed)
{
    char path[PATH_MAX];
    Elf64_Ehdr header;

    build_split("-fPIE -pie");
    AUTO_ELF_IMAGE struct elf_image *split = built_open("split");
    AUTO_FUNCTIONS struct functions truth = built_functions(split);
    snprintf(path, sizeof(path), "%s/bare", built_folder());
    AUTO_CLOSE int fd = open(path, O_RDWR | O_CLOEXEC);
    cr_assert_eq(pread(fd, &header, sizeof(header), 0), sizeof(header));
    header.e_shoff = header.e_shnum = header.e_shstrndx = 0;
    cr_assert_eq(pwrite(fd, &header, sizeof(header), 0), sizeof(header));
    AUTO_ELF_IMAGE struct elf_image *bare = built_open("bare");
    AUTO_FUNCTIONS struct functions found = built_functions(bare);

    cr_expect_not(elf_image_facts(bare)->has_sections);
    cr_expect_not_null(elf_image_unwinds(bare), "what cannot be known must not be taken for harmless");
    for (size_t i = 0; i < ARRAY_SIZE(own_functions); i++)
        cr_expect_not_null(functions_at(&found, functions_named(&truth, own_functions[i])->address), "%s",
                           own_functions[i]);
}

/* Stubs have the names of what they call, whatever the linker was told, and no frame makes a function of
 * them. */
static void expect_stubs(const char *flags)
{
    build_split(flags);
    AUTO_ELF_IMAGE struct elf_image *bare = built_open("bare");
    AUTO_FUNCTIONS struct functions found = built_functions(bare);
    const struct image_function *stub = functions_named(&found, "getenv@plt");

    cr_assert_not_null(stub, "%s", flags);
    cr_expect_eq(stub->flags, IMAGE_FUNCTION_PLT);
    cr_expect_eq(stub->source, IMAGE_SOURCE_PLT);
    cr_expect_not_null(functions_named(&found, "exit@plt"), "%s", flags);
    for (size_t i = 1; i < found.count; i++)
        cr_expect_leq(found.items[i - 1].address + found.items[i - 1].size, found.items[i].address, "%s %s",
                      flags, found.items[i].name);
}

Test(stripped, stubs_have_names)
{
    expect_stubs("-fPIE -pie -Wl,-z,lazy");
    expect_stubs("-fPIE -pie -Wl,-z,now");
    expect_stubs("-fPIE -pie -fcf-protection=full -Wl,-z,ibtplt -Wl,-z,now");
    expect_stubs("-fno-pie -no-pie");
}
