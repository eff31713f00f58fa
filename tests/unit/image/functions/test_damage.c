/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Images that are cut short or damaged: any answer is fine, as long as there is one. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/error.h"
#include "image/functions/functions.h"
#include "tests/unit/image/tiny_elf.h"

/* Opens the image and asks for all it has. Returns whether it could be opened. */
static bool read_all(int fd)
{
    AUTO_ELF_IMAGE struct elf_image *image = NULL;
    struct image_function *functions = NULL;
    struct error err = {0};
    size_t count = 0;

    if (elf_image_open_fd(fd, "damaged", &image, &err) < 0) {
        cr_expect_lt(err.code, 0);
        cr_expect_neq(err.message[0], '\0');
        return false;
    }
    if (image_functions(image, &functions, &count, &err) < 0)
        return false;
    for (size_t i = 0; i < count; i++) {
        size_t available;

        cr_assert_gt(functions[i].size, 0);
        if (elf_image_code(image, functions[i].address, &available))
            cr_assert_gt(available, 0);
    }
    image_functions_free(functions, count);
    return true;
}

/* A copy of this program in memory; stripped copies are small and quick to read. */
static uint8_t *read_program(bool stripped, size_t *ret_size)
{
    char path[] = "/tmp/tracectl-test-XXXXXX", command[128];
    AUTO_CLOSE int fd = mkstemp(path);
    struct stat status;
    uint8_t *bytes;

    cr_assert_geq(fd, 0);
    snprintf(command, sizeof(command), "strip %s -o %s /proc/%d/exe", stripped ? "-s" : "-R .none", path,
             (int)getpid());
    cr_assert_eq(system(command), 0);
    close(fd);
    fd = open(path, O_RDONLY | O_CLOEXEC); /* strip may have replaced the file */
    unlink(path);
    cr_assert_geq(fd, 0);
    cr_assert_eq(fstat(fd, &status), 0);
    bytes = malloc((size_t)status.st_size);
    cr_assert_not_null(bytes);
    cr_assert_eq(read(fd, bytes, (size_t)status.st_size), status.st_size);
    *ret_size = (size_t)status.st_size;
    return bytes;
}

Test(damage, every_length_of_the_first_4_kib)
{
    size_t size, opened = 0;
    AUTO_FREE uint8_t *bytes = read_program(true, &size);

    cr_assert_gt(size, 4096);
    for (size_t length = 0; length <= 4096; length++) {
        AUTO_CLOSE int fd = tiny_file(bytes, length);

        cr_assert_geq(fd, 0);
        opened += read_all(fd);
    }
    cr_expect_lt(opened, 4096, "half a header was accepted");
}

static const uint8_t text[64] = {0x55, 0xc3, 0x90, 0xc3};
static const struct tiny_symbol symbols[] = {
    {"one", 0, 16, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)},
    {"two", 16, 0, ELF64_ST_INFO(STB_LOCAL, STT_FUNC)},
};
static const struct tiny_elf tiny = {.text = text,
                                     .text_size = sizeof(text),
                                     .symbols = symbols,
                                     .symbol_count = 2,
                                     .interpreter = "/lib64/ld.so",
                                     .entry = TINY_TEXT};

Test(damage, every_length_of_a_tiny_image)
{
    uint8_t image[TINY_MAX];
    size_t size = tiny_elf_build(&tiny, image);

    for (size_t length = 0; length < size; length++) {
        AUTO_CLOSE int fd = tiny_file(image, length);

        read_all(fd);
    }
}

/* Every byte of every header and table, with the values that break things most often. */
Test(damage, every_byte_of_a_tiny_image)
{
    static const uint8_t values[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    uint8_t image[TINY_MAX], damaged[TINY_MAX];
    size_t size = tiny_elf_build(&tiny, image);

    for (size_t at = 0; at < size; at++) {
        for (size_t i = 0; i < sizeof(values); i++) {
            memcpy(damaged, image, size);
            damaged[at] = values[i];
            AUTO_CLOSE int fd = tiny_file(damaged, size);
            read_all(fd);
        }
    }
}

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

enum { FLIPS = 12 };

/* A third of the damage goes to the first 4 KiB, a third to the last, where headers and tables are. */
static size_t choose_place(int i, size_t size, uint32_t *seed)
{
    if (i % 3 == 2)
        return next_random(seed) % size;
    return i % 3 ? next_random(seed) % 4096 : size - 1 - next_random(seed) % 4096;
}

static void flip_bits(bool stripped, int rounds, uint32_t seed)
{
    size_t size;
    AUTO_FREE uint8_t *bytes = read_program(stripped, &size);
    AUTO_CLOSE int fd = tiny_file(bytes, size);
    int opened = 0;

    cr_assert_gt(size, 4096);
    cr_assert(read_all(fd), "the undamaged copy must be readable");
    for (int round = 0; round < rounds; round++) {
        size_t places[FLIPS];

        for (int i = 0; i < FLIPS; i++) {
            uint8_t byte;

            places[i] = choose_place(i, size, &seed);
            byte = bytes[places[i]] ^ (uint8_t)(1u << (next_random(&seed) % 8));
            cr_assert_eq(pwrite(fd, &byte, 1, (off_t)places[i]), 1);
        }
        opened += read_all(fd);
        for (size_t i = 0; i < FLIPS; i++)
            cr_assert_eq(pwrite(fd, bytes + places[i], 1, (off_t)places[i]), 1);
    }
    cr_expect_gt(opened, rounds / 2, "only %d of %d could be opened: the rest tests nothing", opened, rounds);
}

Test(damage, flipped_bits_of_a_stripped_program)
{
    flip_bits(true, 3000, 1);
}

Test(damage, flipped_bits_of_a_program_with_debugging_information)
{
    flip_bits(false, 1500, 2);
}
