/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Nothing but code gets a probe. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <gelf.h>
#include <unistd.h>

#include "collector/uprobe/file_code.h"

/* Offsets in this program's file of its first executable segment, and of one that is not. */
static void find_segments(int fd, unsigned long *ret_code, unsigned long *ret_data)
{
    GElf_Phdr segment;
    size_t count;
    Elf *elf;

    elf_version(EV_CURRENT);
    elf = elf_begin(fd, ELF_C_READ, NULL);
    cr_assert_eq(elf_getphdrnum(elf, &count), 0);
    for (size_t i = count; i-- > 0;) {
        cr_assert_not_null(gelf_getphdr(elf, (int)i, &segment));
        if (segment.p_type == PT_LOAD)
            *(segment.p_flags & PF_X ? ret_code : ret_data) = segment.p_offset;
    }
    elf_end(elf);
}

Test(file_code, data_is_not_code)
{
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    unsigned long offsets[2] = {0};
    struct file_code code;

    find_segments(fd, &offsets[0], &offsets[1]);
    cr_assert_neq(offsets[0], offsets[1]);
    cr_assert_eq(file_code_read(fd, &code), 0);
    cr_assert(file_code_has(&code, offsets, 1));
    cr_assert_not(file_code_has(&code, offsets + 1, 1));
    cr_assert_not(file_code_has(&code, offsets, 2), "all of them must be code");
    offsets[0] = ~0ul;
    cr_assert_not(file_code_has(&code, offsets, 1));
    file_code_release(&code);
    close(fd);
}

Test(file_code, what_is_not_elf_may_be_code)
{
    const unsigned long offset = 0;
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    struct file_code code;

    cr_assert_eq(file_code_read(fd, &code), 0);
    cr_assert(file_code_has(&code, &offset, 1));
    file_code_release(&code);
    close(fd);
}
