/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/cost/sites.h"

#include <errno.h>
#include <stdint.h>
#include <unistd.h>

#include "collector/process/map_lines.h"

self_test_function self_test_site(enum self_test_form form, enum self_test_copy copy)
{
    return (self_test_function)((uintptr_t)self_test_form_code(form) +
                                (uintptr_t)copy * SELF_TEST_COPY_BYTES);
}

int self_test_site_offset(self_test_function function, unsigned long *ret_offset)
{
    AUTO_MAP_LINES struct map_lines maps = {0};
    uint64_t address = (uintptr_t)function;
    struct map_line line;

    if (map_lines_open(getpid(), &maps))
        return -ENOENT;
    while (map_lines_next(&maps, &line)) {
        if (address >= line.start && address < line.end) {
            *ret_offset = (unsigned long)(address - line.start + line.offset);
            return 0;
        }
    }
    return -ENOENT;
}
