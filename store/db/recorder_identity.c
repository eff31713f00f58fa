/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who records a run: the machine's boot, the process and its start time, which together never come twice. So
 * that a run whose recorder was killed is told from one that is being recorded.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "store/db/store.h"

static int read_line(const char *path, char *line, size_t size)
{
    AUTO_FCLOSE FILE *file = fopen(path, "re");

    if (!file || !fgets(line, (int)size, file))
        return -ENOENT;
    line[strcspn(line, "\n")] = '\0';
    return 0;
}

static void read_boot_id(char *boot_id, size_t size)
{
    if (read_line("/proc/sys/kernel/random/boot_id", boot_id, size))
        snprintf(boot_id, size, "unknown");
}

/* The process's start in clock ticks since boot: field 22 of its stat; 0 when there is no such process. */
static unsigned long long start_ticks(int pid)
{
    char path[64], line[1024];
    unsigned long long ticks;
    const char *at;

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    if (read_line(path, line, sizeof(line)))
        return 0;
    at = strrchr(line, ')'); /* the name before it may hold anything */
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at && sscanf(at, "%llu", &ticks) == 1 ? ticks : 0;
}

int recorder_identity(int pid, char **ret_identity)
{
    char boot_id[64], *identity;

    read_boot_id(boot_id, sizeof(boot_id));
    if (asprintf(&identity, "%s %d %llu", boot_id, pid, start_ticks(pid)) < 0)
        return -ENOMEM;
    *ret_identity = identity;
    return 0;
}

bool recorder_alive(const char *identity)
{
    char boot_id[64], boot[64];
    unsigned long long ticks;
    int pid;

    read_boot_id(boot_id, sizeof(boot_id));
    if (sscanf(identity, "%63s %d %llu", boot, &pid, &ticks) != 3 || strcmp(boot, boot_id) != 0)
        return false;
    return ticks && start_ticks(pid) == ticks;
}
