/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names and lines from separate debug files and .gnu_debugdata. */
#include <criterion/criterion.h>
#include <limits.h>
#include <string.h>

#include "tests/unit/image/built.h"

/* Builds `bare`, and `split.debug`, which has what was taken from it. */
static void build_pair(const char *flags)
{
    built_write("split.c", split_source);
    built_run(
        "gcc -O2 -g %s -o split split.c && objcopy --only-keep-debug split split.debug && "
        "strip -s -o bare split",
        flags);
}

static void link_pair(void)
{
    built_run("objcopy --add-gnu-debuglink=split.debug bare");
}

/* Whether the image `bare`, whose debug files are below `root`, knows work(), from where it must be `source`.
 */
static bool knows_names(const char *root, enum image_source source)
{
    AUTO_ELF_IMAGE struct elf_image *image = built_open("bare");
    const struct image_function *work;

    cr_assert_eq(elf_image_set_debug_root(image, root), 0);
    AUTO_FUNCTIONS struct functions functions = built_functions(image);
    work = functions_named(&functions, "work");
    if (!work)
        return false;
    cr_expect_eq(work->source, source);
    cr_expect_eq(work->flags, 0);
    cr_expect_not_null(functions_named(&functions, "getenv@plt"));
    return true;
}

Test(debug_files, link_beside_the_image)
{
    build_pair("-Wl,--build-id=none");
    cr_expect_not(knows_names("", IMAGE_SOURCE_DEBUG_FILE), "nothing links to it yet");
    link_pair();
    cr_expect(knows_names("", IMAGE_SOURCE_DEBUG_FILE));
    built_run("mkdir -p .debug && mv split.debug .debug");
    cr_expect(knows_names("", IMAGE_SOURCE_DEBUG_FILE));
    built_run("rm .debug/split.debug");
    cr_expect_not(knows_names("", IMAGE_SOURCE_DEBUG_FILE));
}

Test(debug_files, checksum_must_be_right)
{
    build_pair("-Wl,--build-id=none");
    link_pair();
    built_run("printf x >>split.debug");
    cr_expect_not(knows_names("", IMAGE_SOURCE_DEBUG_FILE), "the file of another build was used");
}

Test(debug_files, build_id_below_the_root)
{
    AUTO_ELF_IMAGE struct elf_image *image = NULL;
    const char *id;
    char root[PATH_MAX];

    build_pair("-Wl,--build-id=sha1");
    image = built_open("bare");
    id = elf_image_facts(image)->build_id;
    cr_assert_not_null(id);
    snprintf(root, sizeof(root), "%s/root", built_folder());
    built_run("mkdir -p root/usr/lib/debug/.build-id/%.2s root/real", id);
    cr_expect_not(knows_names(root, IMAGE_SOURCE_DEBUG_FILE));
    /* The root of a container: an absolute link in it stays in it. */
    built_run(
        "mv split.debug root/real && ln -s /real/split.debug root/usr/lib/debug/.build-id/%.2s/%s.debug", id,
        id + 2);
    cr_expect(knows_names(root, IMAGE_SOURCE_DEBUG_FILE));
    cr_expect_not(knows_names("", IMAGE_SOURCE_DEBUG_FILE), "our own root has no such file");
}

Test(debug_files, build_id_must_be_equal)
{
    build_pair("-Wl,--build-id=sha1");
    built_run(
        "gcc -O1 -g -Wl,--build-id=sha1 -o other split.c && objcopy --only-keep-debug other split.debug");
    link_pair(); /* so that the checksum is right */
    cr_expect_not(knows_names("", IMAGE_SOURCE_DEBUG_FILE), "the file of another build was used");
}

Test(debug_files, lines)
{
    const char *file = NULL;
    unsigned line = 0;

    build_pair("");
    link_pair();
    AUTO_ELF_IMAGE struct elf_image *image = built_open("bare");
    AUTO_FUNCTIONS struct functions functions = built_functions(image);
    cr_assert(image_function_source(image, functions_named(&functions, "work"), &file, &line));
    cr_expect_str_eq(strrchr(file, '/') ? strrchr(file, '/') + 1 : file, "split.c");
    cr_expect_eq(line, 13);
    cr_assert(image_function_source(image, functions_named(&functions, "main"), &file, &line));
    cr_expect_eq(line, 23);
}

Test(debug_files, mini_debug_info)
{
    build_pair("-Wl,--build-id=none");
    built_run(
        "objcopy -S -K work -K odd split mini && xz -9 mini && "
        "objcopy --add-section .gnu_debugdata=mini.xz bare");
    cr_expect(knows_names("", IMAGE_SOURCE_MINI_DEBUG));
    AUTO_ELF_IMAGE struct elf_image *image = built_open("bare");
    AUTO_FUNCTIONS struct functions functions = built_functions(image);
    cr_expect_not_null(functions_named(&functions, "odd"));
    cr_expect_null(functions_named(&functions, "fail"), "it is not in .gnu_debugdata");
}

Test(debug_files, mini_debug_info_may_be_a_bomb)
{
    build_pair("-Wl,--build-id=none");
    built_run("head -c 80M /dev/zero | xz -1 >mini.xz && objcopy --add-section .gnu_debugdata=mini.xz bare");
    AUTO_ELF_IMAGE struct elf_image *image = built_open("bare");
    AUTO_FUNCTIONS struct functions functions = built_functions(image);
    cr_expect_gt(image_functions_own(functions.items, functions.count), 3);
}
