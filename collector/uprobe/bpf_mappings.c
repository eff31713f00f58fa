/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/uprobe/bpf_mappings.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collector/process/map_lines.h"

void bpf_mappings_keep(void)
{
    AUTO_MAP_LINES struct map_lines lines = {0};
    struct map_line line;

    if (map_lines_open(getpid(), &lines))
        return; /* forks stay as dear as they are */
    while (map_lines_next(&lines, &line))
        if (!strcmp(line.name, "anon_inode:bpf-map"))
            madvise((void *)(uintptr_t)line.start, line.end - line.start, MADV_DONTFORK);
}
