/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where the code that a process has in memory is not that of the file that it is mapped from.
 *
 * Only pages that the process has a copy of can differ, so only those are read. A byte that is a breakpoint where
 * the file has none is a breakpoint: one of the kernel's probes, ours or another tool's, which changes
 * nothing about what the program is; or a debugger's or the program's own, which does. Programs with those
 * are traced by ptrace or handle SIGTRAP, and a fresh mapping of the file has the kernel's only.
 */
#ifndef TRACECTL_COLLECTOR_MEMORY_TEXT_DIFF_H
#define TRACECTL_COLLECTOR_MEMORY_TEXT_DIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "collector/process/maps.h"

struct text_stretch {
    uint64_t start, end; /* offsets in the file; end: the first byte behind it */
};

struct text_stretches {
    struct text_stretch *items; /* sorted, none overlaps another */
    size_t count, capacity;
};

/* All zero is empty. */
struct text_diff {
    struct text_stretches mapped;      /* what the process has mapped to run */
    struct text_stretches different;   /* of that: other bytes, or writable at present */
    struct text_stretches breakpoints; /* one byte each: the kernel's probes */
};

/* Compares all executable mappings of the file. A page that is a copy and cannot be read differs, unless the
 * process has ended. A mapping that is writable differs as a whole: the kernel places no breakpoint there.
 * -ESRCH: no such process; -ENOMEM. */
int text_diff_read(pid_t pid, dev_t device, ino_t inode, struct text_diff *ret_diff);
void text_diff_release(struct text_diff *diff);

#define AUTO_TEXT_DIFF CLEANUP(text_diff_release)

/* Whether the kernel has a probe for all processes at this place of an open file: a mapping that is made now
 * has it, too. */
bool text_diff_is_probed(int file, uint64_t offset);

/* Whether the list has any byte of [start, end). */
bool text_stretches_overlap(const struct text_stretches *stretches, uint64_t start, uint64_t end);

#endif
