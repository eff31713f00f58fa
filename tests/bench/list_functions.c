/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * usage: list_functions IMAGE [lines]
 *
 * The functions of an image, one a line, with tabs between: address, size, source, flags, owner of a
 * fragment, name, and with `lines` file:line. On standard error how many milliseconds finding them took.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "image/functions/functions.h"

static void print_flags(unsigned flags)
{
    static const struct {
        unsigned flag;
        char letter;
    } letters[] = {
        {IMAGE_FUNCTION_PLT, 'p'},      {IMAGE_FUNCTION_IFUNC, 'i'},        {IMAGE_FUNCTION_ENTRY_POINT, 'e'},
        {IMAGE_FUNCTION_FRAGMENT, 'f'}, {IMAGE_FUNCTION_SIZE_GUESSED, 'g'}, {IMAGE_FUNCTION_INSIDE, 'I'},
        {IMAGE_FUNCTION_NO_NAME, 'n'},
    };

    for (size_t i = 0; i < sizeof(letters) / sizeof(*letters); i++)
        if (flags & letters[i].flag)
            putchar(letters[i].letter);
    putchar('\t');
}

static const char *const source_names[] = {
    [IMAGE_SOURCE_PLT] = "plt",
    [IMAGE_SOURCE_SYMTAB] = "symtab",
    [IMAGE_SOURCE_DEBUG_FILE] = "debug file",
    [IMAGE_SOURCE_MINI_DEBUG] = "mini debug",
    [IMAGE_SOURCE_DYNSYM] = "dynsym",
    [IMAGE_SOURCE_GOPCLNTAB] = "gopclntab",
    [IMAGE_SOURCE_EH_FRAME] = "eh_frame",
};

static void print(struct elf_image *image, const struct image_function *function, bool lines)
{
    const char *file = "";
    unsigned line = 0;

    printf("%" PRIx64 "\t%" PRIu64 "\t%s\t", function->address, function->size,
           source_names[function->source]);
    print_flags(function->flags);
    printf("%" PRIx64 "\t%s", function->part_of, image_function_display_name(function));
    if (lines && image_function_source(image, function, &file, &line))
        printf("\t%s:%u", file, line);
    putchar('\n');
}

int main(int argc, char **argv)
{
    AUTO_ELF_IMAGE struct elf_image *image = NULL;
    struct image_function *functions = NULL;
    struct error err = {0};
    size_t count = 0;
    uint64_t begun = clock_ns(CLOCK_MONOTONIC);

    if (argc < 2)
        return 2;
    if (elf_image_open(argv[1], &image, &err) < 0 || image_functions(image, &functions, &count, &err) < 0) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    fprintf(stderr, "%.1f\n", (double)(clock_ns(CLOCK_MONOTONIC) - begun) / 1e6);
    for (size_t i = 0; i < count; i++)
        print(image, &functions[i], argc > 2);
    image_functions_free(functions, count);
    return 0;
}
