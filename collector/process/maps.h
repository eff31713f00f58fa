/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The code that a process has mapped from files, as /proc/PID/maps lists it. */
#ifndef TRACECTL_COLLECTOR_PROCESS_MAPS_H
#define TRACECTL_COLLECTOR_PROCESS_MAPS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct error;

/* One executable mapping. */
struct code_mapping {
    uint64_t start, end; /* addresses in the process */
    uint64_t offset;     /* in the file */
    char *path;          /* as the process sees it, without " (deleted)" */
    char link[PATH_MAX]; /* opens the very file that is mapped, deleted, replaced or in a container as it may
                            be */
    dev_t device;
    ino_t inode;
    bool writable;
};

/* The executable file mappings of a process, in ascending order; mappings whose file cannot be reached are
 * left out. -ESRCH: no such process, or one that has ended. The caller frees them with code_mappings_free. */
int process_code_mappings(pid_t pid, struct code_mapping **ret_mappings, size_t *ret_count,
                          struct error *err);
void code_mappings_free(struct code_mapping *mappings, size_t count);

/* Whether a process for which `is_ours` is false maps the file as well. Looks at all processes. */
bool file_is_mapped_elsewhere(dev_t device, ino_t inode, bool (*is_ours)(void *context, pid_t pid),
                              void *context);

/* Whether the process maps the file. */
bool file_is_mapped(pid_t pid, dev_t device, ino_t inode);

#endif
