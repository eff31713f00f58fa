/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/process/maps.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/foreign_file.h"
#include "collector/process/map_lines.h"
#include "collector/process/proc_numbers.h"
#include "collector/process/process.h"

/* The next executable mapping of a file. `*ret_path` lives until the one behind it. */
static bool next_mapping(struct map_lines *lines, struct code_mapping *ret_mapping, char **ret_path)
{
    struct map_line line;

    while (map_lines_next(lines, &line)) {
        if (!line.inode || !line.executable || *line.name != '/')
            continue;
        *ret_mapping = (struct code_mapping){
            .start = line.start,
            .end = line.end,
            .offset = line.offset,
            .inode = (ino_t)line.inode,
            .writable = line.writable,
        };
        *ret_path = line.name;
        return true;
    }
    return false;
}

static void cut_deleted(char *path)
{
    static const char suffix[] = " (deleted)";
    size_t length = strlen(path);

    if (length > strlen(suffix) && !strcmp(path + length - strlen(suffix), suffix))
        path[length - strlen(suffix)] = '\0';
}

/* Finds the file behind a mapping. Some file systems (btrfs, overlayfs) show another device in maps than stat
 * tells, so it is asked for here. */
static bool reach_file(pid_t pid, const char *path, struct code_mapping *mapping)
{
    struct stat file;
    char root[32];

    process_mapped_link(pid, mapping->start, mapping->end, mapping->link, sizeof(mapping->link));
    if (foreign_file_stat(mapping->link, &file)) {
        /* That takes CAP_CHECKPOINT_RESTORE. By its path it is the same file if its number is the same. */
        process_root_link(pid, root, sizeof(root));
        snprintf(mapping->link, sizeof(mapping->link), "%s%s", root, path);
        if (foreign_file_stat(mapping->link, &file) || file.st_ino != mapping->inode)
            return false;
    }
    mapping->device = file.st_dev;
    mapping->inode = file.st_ino;
    return true;
}

void code_mappings_free(struct code_mapping *mappings, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(mappings[i].path);
    free(mappings);
}

int process_code_mappings(pid_t pid, struct code_mapping **ret_mappings, size_t *ret_count, struct error *err)
{
    AUTO_MAP_LINES struct map_lines lines = {0};
    struct code_mapping *mappings = NULL, mapping;
    size_t count = 0, capacity = 0;
    int r = map_lines_open(pid, &lines);
    char *path;

    if (r)
        return error_set(err, r, NULL, "cannot trace process %d", (int)pid);
    while (next_mapping(&lines, &mapping, &path)) {
        cut_deleted(path);
        if (!reach_file(pid, path, &mapping))
            continue;
        mapping.path = strdup(path);
        if (!mapping.path || array_reserve(&mappings, &capacity, count + 1)) {
            free(mapping.path);
            code_mappings_free(mappings, count);
            return error_no_memory(err);
        }
        mappings[count++] = mapping;
    }
    if (!count &&
        !process_has_memory(pid)) /* a zombie's list is empty, which says nothing about what it ran */
        return error_set(err, -ESRCH, NULL, "cannot trace process %d", (int)pid);
    *ret_mappings = mappings;
    *ret_count = count;
    return 0;
}

bool file_is_mapped(pid_t pid, dev_t device, ino_t inode)
{
    AUTO_MAP_LINES struct map_lines lines = {0};
    struct code_mapping mapping;
    char *path, number[24];

    snprintf(number, sizeof(number), " %" PRIuMAX " ", (uintmax_t)inode); /* as it stands in a line */
    if (map_lines_open(pid, &lines) || !map_lines_mention(&lines, number))
        return false;
    while (next_mapping(&lines, &mapping, &path))
        if (mapping.inode == inode && reach_file(pid, path, &mapping) && mapping.device == device &&
            mapping.inode == inode)
            return true;
    return false;
}

bool file_is_mapped_elsewhere(dev_t device, ino_t inode, bool (*is_ours)(void *context, pid_t pid),
                              void *context)
{
    AUTO_PROC_NUMBERS pids;
    pid_t pid;

    if (proc_numbers_open(&pids, "/proc"))
        return true; /* if it cannot be read, it must be assumed */
    while ((pid = proc_numbers_next(&pids)) > 0)
        if (!is_ours(context, pid) && file_is_mapped(pid, device, inode))
            return true;
    return false;
}
