/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/process/map_lines.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/process/target_memory.h"

int map_lines_open(pid_t pid, struct map_lines *ret_lines)
{
    char *text;
    size_t size;
    int r = target_proc_text(pid, "maps", &text, &size);

    if (r)
        return r == -ENOENT ? -ESRCH : r;
    *ret_lines = (struct map_lines){text, text};
    return 0;
}

bool map_lines_mention(const struct map_lines *lines, const char *text)
{
    return lines->next && strstr(lines->next, text);
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
    *ret_line = line;
    return true;
}

bool map_lines_next(struct map_lines *lines, struct map_line *ret_line)
{
    while (lines->next && *lines->next) {
        char *line = lines->next, *end = strchr(line, '\n');

        lines->next = end ? end + 1 : NULL;
        if (end)
            *end = '\0';
        if (parse(line, ret_line))
            return true;
    }
    return false;
}

void map_lines_close(struct map_lines *lines)
{
    free(lines->text);
    *lines = (struct map_lines){0};
}
