/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A file that a process runs or maps, opened once: all that is read of it and all probes that go into it are
 * of this descriptor. The process may unmap the file, and map another one in its place, at any time.
 */
#ifndef TRACECTL_COLLECTOR_PROCESS_TARGET_FILE_H
#define TRACECTL_COLLECTOR_PROCESS_TARGET_FILE_H

#include <sys/stat.h>

#include "base/cleanup.h"
#include "collector/process/maps.h"

struct target_file {
    int fd;
    struct stat stat;
};

#define TARGET_FILE_NONE \
    { \
        .fd = -1 \
    }

/* Opens the file behind a link of /proc, "/proc/PID/exe" for example. -ENOENT: the process has ended, or does
 * not map it any more. Nothing is opened after an error. */
int target_file_open(const char *link, struct target_file *ret_file);

/* Opens the file of a mapping that was listed before. -ENOENT also when another file is there by now. */
int target_file_of_mapping(const struct code_mapping *mapping, struct target_file *ret_file);

static inline void target_file_close(const struct target_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
}

#define AUTO_TARGET_FILE CLEANUP(target_file_close)

#endif
