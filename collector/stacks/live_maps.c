/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/stacks/live_maps.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/foreign_file.h"
#include "collector/process/map_lines.h"
#include "collector/process/process.h"

static enum live_mapping_kind kind_of(uint64_t inode, const char *name)
{
    if (inode)
        return LIVE_FILE;
    if (!strncmp(name, "[vdso]", strlen("[vdso]")))
        return LIVE_VDSO;
    if (!strncmp(name, "[uprobes]", strlen("[uprobes]")))
        return LIVE_UPROBES;
    return LIVE_OTHER;
}

int live_maps_read(pid_t pid, struct live_maps *ret_maps)
{
    AUTO_MAP_LINES struct map_lines lines = {0};
    struct live_maps maps = {0};
    struct map_line line;

    if (map_lines_open(pid, &lines))
        return -ESRCH;
    while (map_lines_next(&lines, &line)) {
        if (array_reserve(&maps.items, &maps.capacity, maps.count + 1)) {
            live_maps_release(&maps);
            return -ENOMEM;
        }
        maps.items[maps.count++] = (struct live_mapping){.start = line.start,
                                                         .end = line.end,
                                                         .offset = line.offset,
                                                         .device = line.device,
                                                         .inode = line.inode,
                                                         .kind = kind_of(line.inode, line.name),
                                                         .executable = line.executable};
    }
    *ret_maps = maps;
    return 0;
}

void live_maps_release(struct live_maps *maps)
{
    free(maps->items);
    *maps = (struct live_maps){0};
}

const struct live_mapping *live_maps_find(const struct live_maps *maps, uint64_t address)
{
    size_t low = 0, high = maps->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct live_mapping *mapping = &maps->items[middle];

        if (address < mapping->start)
            high = middle;
        else if (address >= mapping->end)
            low = middle + 1;
        else
            return mapping;
    }
    return NULL;
}

int live_mapping_open(pid_t pid, const struct live_mapping *mapping)
{
    AUTO_CLOSE int fd = -1;
    struct stat file;
    char path[96];

    process_mapped_link(pid, mapping->start, mapping->end, path, sizeof(path));
    fd = foreign_file_open(path);
    if (fd < 0)
        return fd;
    if (fstat(fd, &file))
        return -errno;
    /* Some file systems (btrfs, overlayfs) show another device in maps than stat tells: the inode decides. */
    if (file.st_ino != mapping->inode)
        return -ESTALE;
    return take_fd(&fd);
}
