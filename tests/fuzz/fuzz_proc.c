/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The texts of /proc/PID, of which a process chooses names, paths and much else: maps, stat, status and
 * cgroup. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "collector/daemon/match.h"
#include "collector/process/map_lines.h"
#include "collector/process/target_memory.h"

static const uint8_t *input;
static size_t input_size;

/* In place of those that read a process's. */
int target_proc_text(pid_t pid, const char *name, char **ret_text, size_t *ret_size)
{
    char *text = malloc(input_size + 1);

    if (!text)
        return -1;
    memcpy(text, input, input_size);
    text[input_size] = '\0';
    *ret_text = text;
    *ret_size = input_size;
    return 0;
}

ssize_t target_proc_read(pid_t pid, const char *name, uint64_t offset, void *ret_bytes, size_t size)
{
    size_t left = offset < input_size ? input_size - offset : 0;

    if (left > size)
        left = size;
    if (left)
        memcpy(ret_bytes, input + offset, left);
    return (ssize_t)left;
}

static void read_maps(void)
{
    AUTO_MAP_LINES struct map_lines lines = {0};
    struct map_line line;
    size_t count = 0, names = 0;

    if (map_lines_open(1, &lines))
        return;
    while (map_lines_next(&lines, &line)) {
        names += strlen(line.name);
        count++;
    }
    if (count > input_size || names > input_size)
        abort();
}

static void read_others(const char *text)
{
    static struct service_process process;
    struct service_target target = {.unit = (char *)"a.service", .container = (char *)"0123456789ab"};

    process.path[0] = '\0';
    if (service_cgroup_path(text, process.cgroup, sizeof(process.cgroup)) &&
        strlen(process.cgroup) >= sizeof(process.cgroup))
        abort();
    service_target_matches(&target, &process);
    service_stat_parse(text, &process);
    service_status_parse(text, &process);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = NULL;

    input = data;
    input_size = size;
    read_maps();
    if (target_proc_text(1, "", &text, &size) == 0)
        read_others(text);
    free(text);
    return 0;
}
