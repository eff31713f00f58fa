/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/process/limits.h"

#include <inttypes.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

/* Copies what follows `name` in a line of /proc/PID/FILE. False: there is no such line. */
static bool find_line(pid_t pid, const char *file_name, const char *name, char *ret_rest, size_t size)
{
    AUTO_FCLOSE FILE *file = NULL;
    char path[64], line[256];

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file_name);
    file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file)) {
        if (strncmp(line, name, strlen(name)) != 0)
            continue;
        snprintf(ret_rest, size, "%s", line + strlen(name));
        return true;
    }
    return false;
}

static bool has_limit(pid_t pid, const char *name)
{
    char rest[128], soft[32];

    return find_line(pid, "limits", name, rest, sizeof(rest)) && sscanf(rest, "%31s", soft) == 1 &&
           strcmp(soft, "unlimited") != 0;
}

bool process_has_address_limit(pid_t pid)
{
    return has_limit(pid, "Max address space");
}

bool process_has_lock_limit(pid_t pid)
{
    uint64_t effective;
    char rest[128];

    return find_line(pid, "status", "CapEff:", rest, sizeof(rest)) &&
           sscanf(rest, "%" SCNx64, &effective) == 1 && !(effective >> CAP_IPC_LOCK & 1) &&
           has_limit(pid, "Max locked memory");
}

bool process_has_other_cgroups(pid_t pid)
{
    AUTO_FCLOSE FILE *theirs = NULL, *ours = fopen("/proc/self/cgroup", "re");
    char path[64], line[PATH_MAX], our_line[PATH_MAX];
    bool same = true;

    snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
    theirs = fopen(path, "re");
    while (ours && theirs && same && fgets(line, sizeof(line), theirs))
        same = fgets(our_line, sizeof(our_line), ours) && !strcmp(line, our_line);
    return !same;
}

uint64_t process_locked_bytes(pid_t pid)
{
    uint64_t kibibytes;
    char rest[128];

    return find_line(pid, "status", "VmLck:", rest, sizeof(rest)) && sscanf(rest, "%" SCNu64, &kibibytes) == 1
               ? kibibytes << 10
               : 0;
}
