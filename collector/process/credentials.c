/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/process/credentials.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/fnv.h"

static void read_ids(const char *rest, uint32_t *ids)
{
    sscanf(rest, "%" SCNu32 "%" SCNu32 "%" SCNu32 "%" SCNu32, &ids[0], &ids[1], &ids[2], &ids[3]);
}

static void read_line(const char *line, struct credentials *credentials)
{
    static const char *const capabilities[] = {"CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"};

    if (!strncmp(line, "Uid:", 4))
        read_ids(line + 4, credentials->users);
    else if (!strncmp(line, "Gid:", 4))
        read_ids(line + 4, credentials->groups);
    else if (!strncmp(line, "Groups:", 7))
        credentials->other_groups = fnv_add(FNV_START, line + 7, strlen(line + 7));
    for (size_t i = 0; i < ARRAY_SIZE(capabilities); i++)
        if (!strncmp(line, capabilities[i], 7))
            sscanf(line + 7, "%" SCNx64, &credentials->capabilities[i]);
}

int process_credentials(pid_t pid, struct credentials *ret)
{
    AUTO_FREE char *line = NULL;
    AUTO_FCLOSE FILE *status = NULL;
    struct stat namespace;
    size_t size = 0;
    char path[64];

    *ret = (struct credentials){0};
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    status = fopen(path, "re");
    if (!status || getline(&line, &size, status) < 0)
        return -ESRCH;
    while (getline(&line, &size, status) >= 0)
        read_line(line, ret);
    snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
    ret->user_namespace = stat(path, &namespace) ? 0 : namespace.st_ino;
    return 0;
}

bool credentials_equal(const struct credentials *one, const struct credentials *other)
{
    bool known = one->user_namespace && other->user_namespace;

    return !memcmp(one->users, other->users, sizeof(one->users)) &&
           !memcmp(one->groups, other->groups, sizeof(one->groups)) &&
           !memcmp(one->capabilities, other->capabilities, sizeof(one->capabilities)) &&
           one->other_groups == other->other_groups &&
           (!known || one->user_namespace == other->user_namespace);
}
