/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Opening images: what is refused and with which words, facts, addresses and offsets. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/error.h"
#include "image/elf/elf_image.h"
#include "tests/unit/image/tiny_elf.h"

static const uint8_t just_ret[] = {0xc3};

static struct elf_image *open_tiny(const struct tiny_elf *tiny)
{
    AUTO_CLOSE int fd = tiny_elf_file(tiny);
    struct elf_image *image = NULL;
    struct error err = {0};

    cr_assert_eq(elf_image_open_fd(fd, "tiny", &image, &err), 0, "%s", err.message);
    return image;
}

static void expect_refusal(const void *data, size_t size, int code, const char *message)
{
    AUTO_CLOSE int fd = tiny_file(data, size);
    struct elf_image *image = NULL;
    struct error err = {0};

    cr_assert_geq(fd, 0);
    cr_expect_eq(elf_image_open_fd(fd, "x", &image, &err), code);
    cr_expect_null(image);
    cr_expect_eq(err.code, code);
    cr_expect_str_eq(err.message, message);
}

Test(elf_image, refuses_what_is_not_elf)
{
    expect_refusal("hello world", 11, -ENOEXEC, "cannot trace x: not an ELF file (name a compiled program)");
    expect_refusal("", 0, -ENOEXEC, "cannot trace x: not an ELF file (name a compiled program)");
    expect_refusal("#!/bin/sh\n", 10, -ENOEXEC,
                   "cannot trace x: a script, not an ELF file (name its interpreter)");
    expect_refusal("!<arch>\n", 8, -ENOEXEC, "cannot trace x: not an ELF file (name a compiled program)");
}

Test(elf_image, refuses_other_kinds_of_elf)
{
    struct tiny_elf tiny = {.text = just_ret, .text_size = 1, .machine = EM_AARCH64};
    uint8_t image[TINY_MAX];
    size_t size = tiny_elf_build(&tiny, image);

    expect_refusal(image, size, -ENOTSUP,
                   "cannot trace x: compiled for another kind of processor (only x86-64 is supported)");
    tiny = (struct tiny_elf){.text = just_ret, .text_size = 1, .type = ET_REL};
    size = tiny_elf_build(&tiny, image);
    expect_refusal(image, size, -ENOTSUP,
                   "cannot trace x: an object file that is not linked (name a program or a shared library)");
    tiny.type = ET_CORE;
    size = tiny_elf_build(&tiny, image);
    expect_refusal(image, size, -ENOTSUP, "cannot trace x: a core dump (name a program or a shared library)");
}

Test(elf_image, refuses_files_that_cannot_be_opened)
{
    struct elf_image *image = NULL;
    struct error err = {0};

    cr_expect_eq(elf_image_open("/nonexistent/program", &image, &err), -ENOENT);
    cr_expect_str_eq(err.message, "cannot trace /nonexistent/program: no such file or directory");
    cr_expect_eq(elf_image_open("/", &image, &err), -ENOEXEC);
    cr_expect_str_eq(err.message, "cannot trace /: not a regular file (name a compiled program)");
    cr_expect_eq(elf_image_open("/dev/null", &image, NULL), -ENOEXEC);
    cr_expect_null(image);
}

Test(elf_image, tells_static_from_dynamic_programs)
{
    struct tiny_elf tiny = {.text = just_ret, .text_size = 1, .entry = TINY_TEXT};
    AUTO_ELF_IMAGE struct elf_image *without = open_tiny(&tiny);
    AUTO_ELF_IMAGE struct elf_image *with = NULL;

    cr_expect(elf_image_facts(without)->is_static);
    cr_expect_null(elf_image_facts(without)->interpreter);
    cr_expect_not(elf_image_facts(without)->pie);
    cr_expect_eq(elf_image_facts(without)->entry, TINY_TEXT);
    tiny.interpreter = "/lib64/ld.so";
    with = open_tiny(&tiny);
    cr_expect_not(elf_image_facts(with)->is_static);
    cr_expect_str_eq(elf_image_facts(with)->interpreter, "/lib64/ld.so");
    cr_expect_null(elf_image_unwinds(with));
}

Test(elf_image, knows_go_exceptions_and_debug_information_by_section)
{
    static const char *const go[] = {".gopclntab", ".go.buildinfo", ".note.go.buildid"};
    struct tiny_elf tiny = {.text = just_ret, .text_size = 1};

    for (size_t i = 0; i < 3; i++) {
        AUTO_ELF_IMAGE struct elf_image *image = NULL;

        tiny.extra_section = go[i];
        image = open_tiny(&tiny);
        cr_expect(elf_image_facts(image)->is_go, "%s", go[i]);
        cr_expect_str_eq(elf_image_unwinds(image), "a go program");
    }
    tiny.extra_section = ".gcc_except_table";
    AUTO_ELF_IMAGE struct elf_image *cxx = open_tiny(&tiny);
    cr_expect(elf_image_facts(cxx)->has_except_table);
    cr_expect_not(elf_image_facts(cxx)->is_go);
    cr_expect_str_eq(elf_image_unwinds(cxx), "it has exception tables");
    tiny.extra_section = ".debug_info";
    AUTO_ELF_IMAGE struct elf_image *debug = open_tiny(&tiny);
    cr_expect(elf_image_facts(debug)->has_debug_info);
    cr_expect_null(elf_image_unwinds(debug));
}

Test(elf_image, knows_rust_by_its_personality_routine)
{
    const struct tiny_symbol symbol = {"rust_eh_personality", 0, 1, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)};
    const struct tiny_elf tiny = {.text = just_ret, .text_size = 1, .symbols = &symbol, .symbol_count = 1};
    AUTO_ELF_IMAGE struct elf_image *image = open_tiny(&tiny);

    cr_expect(elf_image_facts(image)->is_rust);
    cr_expect_str_eq(elf_image_unwinds(image), "a rust program");
}

Test(elf_image, translates_addresses)
{
    const struct tiny_elf tiny = {.text = just_ret, .text_size = 1};
    AUTO_ELF_IMAGE struct elf_image *image = open_tiny(&tiny);
    uint64_t value = 77;
    const uint8_t *code;
    size_t available;

    cr_expect_eq(elf_image_file_offset(image, TINY_TEXT, &value), 0);
    cr_expect_eq(value, TINY_TEXT_OFFSET);
    cr_expect_eq(elf_image_load_bias(image, TINY_BASE + 0x10000, 0, &value), 0);
    cr_expect_eq(value, 0x10000);
    value = 77;
    cr_expect_eq(elf_image_file_offset(image, TINY_BASE - 1, &value), -ENOENT);
    cr_expect_eq(elf_image_file_offset(image, TINY_BASE + TINY_MAX, &value), -ENOENT);
    cr_expect_eq(elf_image_load_bias(image, TINY_BASE, 0x100000, &value), -ENOENT);
    cr_expect_eq(value, 77, "an output was touched by a failure");
    code = elf_image_code(image, TINY_TEXT, &available);
    cr_assert_not_null(code);
    cr_expect_eq(code[0], 0xc3);
    cr_expect_lt(available, TINY_MAX - TINY_TEXT_OFFSET);
    cr_expect_null(elf_image_code(image, TINY_BASE - 1, &available));
}

Test(elf_image, code_ends_where_the_file_ends)
{
    const struct tiny_elf tiny = {.text = just_ret, .text_size = 1};
    uint8_t bytes[TINY_MAX];
    AUTO_ELF_IMAGE struct elf_image *image = NULL;
    uint64_t offset;
    size_t available = 0;

    cr_assert_gt(tiny_elf_build(&tiny, bytes), TINY_TEXT_OFFSET + 1);
    AUTO_CLOSE int fd = tiny_file(bytes, TINY_TEXT_OFFSET + 1);
    cr_assert_eq(elf_image_open_fd(fd, "cut", &image, NULL), 0);
    cr_assert_not_null(elf_image_code(image, TINY_TEXT, &available));
    cr_expect_eq(available, 1);
    cr_expect_eq(elf_image_file_offset(image, TINY_TEXT + 1, &offset), -ENOENT);
}

/* The line of /proc/self/maps that holds `address`. */
static bool mapping_of(uintptr_t address, uint64_t *ret_start, uint64_t *ret_offset)
{
    AUTO_FCLOSE FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    uint64_t end;

    while (maps && fgets(line, sizeof(line), maps))
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, ret_start, &end, ret_offset) == 3 &&
            address >= *ret_start && address < end)
            return true;
    return false;
}

Test(elf_image, agrees_with_the_running_process)
{
    AUTO_ELF_IMAGE struct elf_image *image = NULL;
    uintptr_t here = (uintptr_t)mapping_of;
    uint64_t start, file_offset, bias, offset;
    const uint8_t *code;
    size_t available;

    cr_assert_eq(elf_image_open("/proc/self/exe", &image, NULL), 0);
    cr_expect(elf_image_facts(image)->interpreter != NULL);
    cr_expect_not(elf_image_facts(image)->library);
    cr_expect_not(elf_image_facts(image)->is_static);
    cr_assert(mapping_of(here, &start, &file_offset));
    cr_assert_eq(elf_image_load_bias(image, start, file_offset, &bias), 0);
    cr_assert_eq(elf_image_file_offset(image, here - bias, &offset), 0);
    cr_expect_eq(offset, here - start + file_offset);
    code = elf_image_code(image, here - bias, &available);
    cr_assert_not_null(code);
    cr_assert_gt(available, 64);
    cr_expect_eq(memcmp(code, (const void *)here, 64), 0);
}

Test(elf_image, prints_the_build_id_as_hexadecimal)
{
    AUTO_ELF_IMAGE struct elf_image *image = NULL;
    const char *id;

    cr_assert_eq(elf_image_open("/proc/self/exe", &image, NULL), 0);
    id = elf_image_facts(image)->build_id;
    if (!id)
        cr_skip_test("this compiler writes no build id");
    cr_expect_geq(strlen(id), 16);
    cr_expect_eq(strspn(id, "0123456789abcdef"), strlen(id));
}

Test(elf_image, frees_nothing)
{
    elf_image_free(NULL);
}
