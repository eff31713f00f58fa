/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a process has in memory at places of files' code that were given probes of the kernel's. */
#ifndef TRACECTL_COLLECTOR_MEMORY_TEXT_SITES_H
#define TRACECTL_COLLECTOR_MEMORY_TEXT_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "collector/process/maps.h"

/* What a process has mapped as code at one moment. All zero is closed. */
struct text_sites {
    struct code_mapping *mappings;
    size_t count;
    pid_t pid;
};

enum text_site {
    TEXT_SITE_UNMAPPED, /* the process has not mapped it to run */
    TEXT_SITE_UNKNOWN,  /* the memory cannot be read: it is ending, for example */
    TEXT_SITE_PROBED,   /* a breakpoint, or the call that the kernel replaces a no-op of five bytes by */
    TEXT_SITE_OTHER     /* anything else, in one of its mappings at least */
};

/* -ESRCH: no such process; -ENOMEM. */
int text_sites_open(pid_t pid, struct text_sites *ret_sites);
void text_sites_close(struct text_sites *sites);
#define AUTO_TEXT_SITES CLEANUP(text_sites_close)

/* Whether the process maps the file as code. */
bool text_sites_have(const struct text_sites *sites, dev_t device, ino_t inode);

/* Looks at places of a file, `offsets` in ascending order; `ret_found` has as many answers. */
void text_sites_read(const struct text_sites *sites, dev_t device, ino_t inode, const unsigned long *offsets,
                     size_t count, enum text_site *ret_found);

#endif
