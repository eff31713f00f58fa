/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/target/map_lines.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int map_lines_open(pid_t pid, struct map_lines *ret_lines)
{
    char path[64];
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    file = fopen(path, "re");
    if (!file)
        return errno == ENOENT ? -ESRCH : -errno;
    *ret_lines = (struct map_lines){.file = file};
    return 0;
}

/* "START-END RIGHTS OFFSET MAJOR:MINOR INODE   NAME" */
static bool parse(char *text, struct map_line *ret_line)
{
    struct map_line line;
    uint64_t major, minor;
    char rights[8];
    int name = 0;

    if (sscanf(text, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %" SCNx64 ":%" SCNx64 " %" SCNu64 " %n",
               &line.start, &line.end, rights, &line.offset, &major, &minor, &line.inode, &name) != 7)
        return false;
    line.executable = strchr(rights, 'x');
    line.writable = strchr(rights, 'w');
    line.device = major << 32 | minor;
    line.name = text + name;
    line.name[strcspn(line.name, "\n")] = '\0';
    *ret_line = line;
    return true;
}

bool map_lines_next(struct map_lines *lines, struct map_line *ret_line)
{
    while (lines->file && getline(&lines->line, &lines->size, lines->file) > 0)
        if (parse(lines->line, ret_line))
            return true;
    return false;
}

void map_lines_close(struct map_lines *lines)
{
    if (lines->file)
        fclose(lines->file);
    free(lines->line);
    *lines = (struct map_lines){0};
}
