/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/memory/page_map.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "collector/process/target_memory.h"

/* Of a word of /proc/PID/pagemap. */
#define PAGEMAP_PRESENT (1ull << 63)
#define PAGEMAP_SWAPPED (1ull << 62)
#define PAGEMAP_FILE (1ull << 61)

bool page_map_is_copy(uint64_t word)
{
    return word & (PAGEMAP_PRESENT | PAGEMAP_SWAPPED) && !(word & PAGEMAP_FILE);
}

uint64_t *page_map_read(pid_t pid, uint64_t start, uint64_t end)
{
    size_t pages = (end - start) / PAGE_MAP_PAGE;
    AUTO_FREE uint64_t *words = calloc(pages + 1, sizeof(*words));

    if (!words || target_proc_read(pid, "pagemap", start / PAGE_MAP_PAGE * sizeof(*words), words,
                                   pages * sizeof(*words)) != (ssize_t)(pages * sizeof(*words)))
        return NULL;
    return take_pointer(words);
}
