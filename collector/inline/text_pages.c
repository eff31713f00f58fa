/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/inline/text_pages.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/foreign_file.h"
#include "collector/memory/page_map.h"

#define PAGE PAGE_MAP_PAGE
#define CALLS_MOST 512 /* of the kernel: the process stands still for them */

/* Whether a page has what the file has; behind the file's end a mapping has zeros. */
static bool is_as_in_file(const struct remote *remote, const struct code_mapping *mapping, int file,
                          size_t page)
{
    uint8_t now[PAGE], wanted[PAGE] = {0};

    return !remote_read(remote, mapping->start + page * PAGE, now, PAGE) &&
           pread(file, wanted, PAGE, (off_t)(mapping->offset + page * PAGE)) > 0 &&
           !memcmp(now, wanted, PAGE);
}

void text_pages_give_back(struct remote *remote, const struct code_mapping *mapping, const bool *changed)
{
    size_t pages = (mapping->end - mapping->start) / PAGE, first = 0, calls = 0;
    AUTO_FREE uint64_t *words = page_map_read(remote_pid(remote), mapping->start, mapping->end);
    AUTO_CLOSE int file = words ? foreign_file_open(mapping->link) : -1;
    bool any = false;

    if (file < 0)
        return;
    for (size_t i = 0; i <= pages && calls < CALLS_MOST;
         i++) { /* a call for a stretch without others' pages */
        const uint64_t arguments[6] = {mapping->start + first * PAGE, (i - first) * PAGE, MADV_DONTNEED};
        bool copy = i < pages && page_map_is_copy(words[i]);
        int64_t ignored;

        if (i < pages && (!copy || ((!changed || changed[i]) && is_as_in_file(remote, mapping, file, i)))) {
            any |= copy;
            continue;
        }
        if (any && remote_call(remote, SYS_madvise, arguments, &ignored, NULL))
            return;
        calls += any;
        any = false;
        first = i + 1;
    }
}
