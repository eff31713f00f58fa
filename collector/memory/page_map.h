/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What /proc/PID/pagemap says about the pages of a mapping. */
#ifndef TRACECTL_COLLECTOR_MEMORY_PAGE_MAP_H
#define TRACECTL_COLLECTOR_MEMORY_PAGE_MAP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PAGE_MAP_PAGE 4096u /* bytes of a page */

/* A word for each page of [start, end), which are multiples of a page; NULL: it cannot be read, or no memory.
 * The caller frees it. */
uint64_t *page_map_read(pid_t pid, uint64_t start, uint64_t end);

/* Whether the page is a copy that only this process has: another one than that of the file. */
bool page_map_is_copy(uint64_t word);

#endif
