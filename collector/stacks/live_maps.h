/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The memory of a process at one moment: what is mapped where, and copies of pieces of it. */
#ifndef TRACECTL_COLLECTOR_STACKS_LIVE_MAPS_H
#define TRACECTL_COLLECTOR_STACKS_LIVE_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum live_mapping_kind { LIVE_OTHER, LIVE_FILE, LIVE_VDSO, LIVE_UPROBES };

struct live_mapping {
    uint64_t start, end; /* end: the first byte behind it */
    uint64_t offset;     /* in the file */
    uint64_t device, inode;
    enum live_mapping_kind kind;
    bool executable;
};

/* All zero is an empty list. */
struct live_maps {
    struct live_mapping *items; /* by ascending address */
    size_t count, capacity;
};

/* -ESRCH when the process is gone, -ENOMEM. `ret_maps` is not changed then. */
int live_maps_read(pid_t pid, struct live_maps *ret_maps);

void live_maps_release(struct live_maps *maps);

/* The mapping that an address lies in, or NULL. */
const struct live_mapping *live_maps_find(const struct live_maps *maps, uint64_t address);

/* Opens the file behind a mapping: the very file, deleted, replaced or in a container as it may be. Returns a
 * descriptor, or -ESTALE when something else lies there by now, or why it cannot be opened. */
int live_mapping_open(pid_t pid, const struct live_mapping *mapping);

#endif
