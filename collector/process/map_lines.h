/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The lines of /proc/PID/maps, one after the other: what a process has mapped, by ascending address. */
#ifndef TRACECTL_COLLECTOR_PROCESS_MAP_LINES_H
#define TRACECTL_COLLECTOR_PROCESS_MAP_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

/* All zero is closed. */
struct map_lines {
    char *text, *next;
};

struct map_line {
    uint64_t start, end;    /* end: the first byte behind it */
    uint64_t offset;        /* in the file */
    uint64_t device, inode; /* the former as major << 32 | minor, and not always what stat tells */
    bool executable, writable;
    char *name; /* a path, perhaps with " (deleted)" behind it, "[stack]" and the like, or ""; until the lines
                   are closed */
};

/* -ESRCH: the process is gone; or why its maps cannot be read. */
int map_lines_open(pid_t pid, struct map_lines *ret_lines);

/* Whether `text` stands anywhere in the lines that map_lines_next() has not given yet: for those who go through all
 * processes to find something that few have: no line is parsed for it. */
bool map_lines_mention(const struct map_lines *lines, const char *text);

/* False: there is none any more. */
bool map_lines_next(struct map_lines *lines, struct map_line *ret_line);

void map_lines_close(struct map_lines *lines);

#define AUTO_MAP_LINES CLEANUP(map_lines_close)

#endif
