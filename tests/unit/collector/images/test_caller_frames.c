/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where frames of callers begin: what an image's call frame information says is what its code does. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "collector/images/caller_frames.h"
#include "image/arch/disasm.h"
#include "image/flow/call_depth.h"

static char *c_library(void)
{
    static char path[4096];
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4200];

    while (maps && fgets(line, sizeof(line), maps))
        if (sscanf(line, "%*s %*s %*s %*s %*s %4095s", path) == 1 && strstr(path, "/libc.so"))
            break;
    cr_assert(maps);
    fclose(maps);
    return path;
}

/* Of the calls of one function. */
static void compare(struct caller_frames *told, struct elf_image *image, const struct call_depth *calls,
                    size_t count, size_t *ret_same)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t depth = caller_frames_told_depth(told, image, calls[i].return_address);

        cr_expect(!depth || !calls[i].bytes || depth == calls[i].bytes, "%#lx: told %lu, code %lu",
                  (unsigned long)calls[i].return_address, (unsigned long)depth,
                  (unsigned long)calls[i].bytes);
        *ret_same += depth && depth == calls[i].bytes;
    }
}

Test(caller_frames, what_is_told_is_what_the_code_does)
{
    AUTO_FREE struct image_function *functions = NULL;
    AUTO_DISASM struct disasm *disasm = NULL;
    struct caller_frames told = {0};
    AUTO_ELF_IMAGE struct elf_image *image = NULL;
    size_t count, same = 0, calls_in_all = 0;

    cr_assert_eq(elf_image_open(c_library(), &image, NULL), 0);
    cr_assert_eq(image_functions(image, &functions, &count, NULL), 0);
    cr_assert_eq(disasm_new(&disasm, NULL), 0);
    for (size_t i = 0; i < count; i++) {
        AUTO_FLOW_GRAPH struct flow_graph *graph = NULL;
        AUTO_FREE struct call_depth *calls = NULL;
        size_t call_count = 0;

        if (flow_graph_new(image, functions, count, &functions[i], disasm, &graph) ||
            call_depths(graph, &calls, &call_count))
            continue;
        compare(&told, image, calls, call_count, &same);
        calls_in_all += call_count;
    }
    cr_expect_gt(calls_in_all, 1000);
    cr_expect_gt(10 * same, 8 * calls_in_all, "%zu of %zu", same, calls_in_all);
    caller_frames_release(&told);
}

Test(caller_frames, what_nobody_has_told_is_not_known)
{
    struct caller_frames told = {0};
    AUTO_ELF_IMAGE struct elf_image *image = NULL;

    cr_assert_eq(elf_image_open(c_library(), &image, NULL), 0);
    cr_expect_eq(caller_frames_told_depth(&told, image, 1), 0);
    cr_expect_eq(caller_frames_told_depth(&told, image, UINT64_MAX), 0);
    caller_frames_release(&told);
}
