/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/uprobe/file_code.h"

#include <errno.h>
#include <gelf.h>
#include <stdlib.h>

#include "image/elf/elf_file.h"

static void keep_executable(Elf *elf, size_t count, struct file_code *code)
{
    GElf_Phdr segment;

    for (size_t i = 0; i < count; i++)
        if (gelf_getphdr(elf, (int)i, &segment) && segment.p_type == PT_LOAD && segment.p_flags & PF_X)
            code->segments[code->count++] = segment;
}

int file_code_read(int fd, struct file_code *ret_code)
{
    struct file_code code = {0};
    struct elf_file file;
    Elf *elf = elf_file_begin(fd, &file);
    size_t count;

    if (!elf || elf_getphdrnum(elf, &count))
        count = 0;
    if (count) {
        code.segments = calloc(count, sizeof(*code.segments));
        if (code.segments)
            keep_executable(elf, count, &code);
    }
    elf_end(elf);
    if (count && !code.segments)
        return -ENOMEM;
    *ret_code = code;
    return 0;
}

void file_code_release(struct file_code *code)
{
    free(code->segments);
    *code = (struct file_code){0};
}

static bool is_code(const struct file_code *code, uint64_t offset)
{
    for (size_t i = 0; i < code->count; i++)
        if (offset >= code->segments[i].p_offset &&
            offset - code->segments[i].p_offset < code->segments[i].p_filesz)
            return true;
    return false;
}

bool file_code_has(const struct file_code *code, const unsigned long *offsets, size_t count)
{
    for (size_t i = 0; code->segments && i < count; i++)
        if (!is_code(code, offsets[i]))
            return false;
    return true;
}
