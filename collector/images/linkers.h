/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The dynamic linkers of traced processes, and where each of them tells debuggers that it has mapped or
 * unmapped something: the function _dl_debug_state() and the state in _r_debug (glibc's <link.h>).
 */
#ifndef TRACECTL_COLLECTOR_IMAGES_LINKERS_H
#define TRACECTL_COLLECTOR_IMAGES_LINKERS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "collector/backend/life_cycle_source.h"
#include "collector/process/maps.h"

struct linker {
    dev_t device;
    ino_t inode;
    int file;   /* open */
    bool meets; /* it has the place */
    struct linker_sites sites;
};

/* Those that were met so far; all zero at first. */
struct linkers {
    struct linker *linkers;
    size_t count, capacity;
};

void linkers_release(struct linkers *linkers);

/* The mapping of the dynamic linker, NULL: a static program. It goes by the names that linkers have:
 * PT_INTERP is a link to one of them. */
const struct code_mapping *linkers_mapping(const struct code_mapping *mappings, size_t count);

/* What is known of the linker in a mapping's file, which is read when it is met first. It moves when another
 * one is met. -ENOMEM; other errors: the file cannot be opened, or is not mapped any more. */
int linkers_find(struct linkers *linkers, const struct code_mapping *mapping,
                 const struct linker **ret_linker);

#endif
