/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/uprobe/bpf_mappings.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"

/* Our own maps are read without base/aside.h: the process that it would start for that had page tables for all of the
 * memory that it is not to have. */
void bpf_mappings_keep(void)
{
    AUTO_FCLOSE FILE *maps = fopen("/proc/self/maps", "re");
    AUTO_FREE char *line = NULL;
    size_t room = 0;

    while (maps && getline(&line, &room, maps) > 0) {
        uint64_t start, end;

        if (strstr(line, "anon_inode:bpf-map") && sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) == 2)
            madvise((void *)(uintptr_t)start, end - start, MADV_DONTFORK);
    }
}
