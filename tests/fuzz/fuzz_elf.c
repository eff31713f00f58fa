/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Any bytes as an image: opening it, its functions, their lines and owners, and the instructions at their
 * beginnings. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "image/arch/disasm.h"
#include "image/functions/functions.h"
#include "image/source/source_frames.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile size_t read_length; /* so that the string is read */

/* What functions.h promises must hold whatever the bytes are. */
static void check_frames(struct elf_image *image, uint64_t address)
{
    struct source_frame frames[8];
    size_t count = image_source_frames(image, address, frames, 8);

    if (count > 8)
        abort();
    for (size_t i = 0; i < count; i++)
        read_length = (frames[i].function ? strlen(frames[i].function) : 0) +
                      (frames[i].file ? strlen(frames[i].file) : 0);
}

static void check_functions(struct elf_image *image, struct disasm *disasm,
                            const struct image_function *functions, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct image_function *function = &functions[i];
        const struct image_function *owner;
        struct instruction instruction;
        const char *file;
        size_t available;
        unsigned line;
        const uint8_t *code = elf_image_code(image, function->address, &available);

        if (function->size == 0 || !function->name || (i && functions[i - 1].address >= function->address))
            abort();
        owner = image_functions_owner(functions, count, function->address);
        if (owner ? owner->address != function->address && owner->address != function->part_of
                  : !(function->flags & IMAGE_FUNCTION_FRAGMENT))
            abort();
        if (image_function_source(image, function, &file, &line))
            read_length = strlen(file);
        check_frames(image, function->address + function->size / 2);
        if (code)
            disasm_decode(disasm, code, available, function->address, &instruction);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_CLOSE int fd = memfd_create("fuzz", MFD_CLOEXEC);
    AUTO_ELF_IMAGE struct elf_image *image = NULL;
    AUTO_DISASM struct disasm *disasm = NULL;
    struct image_function *functions = NULL;
    struct error err;
    size_t count = 0;

    if (fd < 0 || write(fd, data, size) != (ssize_t)size || disasm_new(&disasm, &err) < 0)
        return 0;
    if (elf_image_open_fd(fd, "fuzz", &image, &err) < 0)
        return 0;
    if (image_functions(image, &functions, &count, &err) == 0)
        check_functions(image, disasm, functions, count);
    image_functions_free(functions, count);
    return 0;
}
