/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/process/frozen.h"

#include <limits.h>
#include <mntent.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

/* A version of control groups: how its file system is mounted, and what says that a group is frozen. */
struct version {
    const char *type, *option; /* option: NULL for any */
    const char *controller;    /* as /proc/PID/cgroup has it, with its colons */
    const char *file, *line;
};

static const struct version versions[] = {
    {"cgroup2", NULL, "::", "cgroup.events", "frozen 1"},
    {"cgroup", "freezer", ":freezer:", "freezer.state", "FROZEN"},
};

/* The path of the process's group, from the file system's root. */
static bool find_group(pid_t pid, const struct version *version, char *ret_group, size_t size)
{
    AUTO_FCLOSE FILE *file = NULL;
    char path[64], line[PATH_MAX];

    snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
    file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file)) {
        const char *group = strstr(line, version->controller);

        if (!group || group != strchr(line, ':'))
            continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(ret_group, size, "%s", group + strlen(version->controller));
        return true;
    }
    return false;
}

static bool find_mount(const struct version *version, char *ret_path, size_t size)
{
    FILE *mounts = setmntent("/proc/self/mounts", "re");
    struct mntent entry;
    char text[PATH_MAX];
    bool found = false;

    while (mounts && !found && getmntent_r(mounts, &entry, text, sizeof(text))) {
        found = !strcmp(entry.mnt_type, version->type) &&
                (!version->option || hasmntopt(&entry, version->option));
        if (found)
            snprintf(ret_path, size, "%s", entry.mnt_dir);
    }
    if (mounts)
        endmntent(mounts);
    return found;
}

static bool is_frozen_in(pid_t pid, const struct version *version)
{
    char group[PATH_MAX], mount[PATH_MAX], path[3 * PATH_MAX], line[128];
    AUTO_FCLOSE FILE *file = NULL;

    if (!find_group(pid, version, group, sizeof(group)) || !find_mount(version, mount, sizeof(mount)))
        return false;
    snprintf(path, sizeof(path), "%s%s/%s", mount, group, version->file);
    file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file))
        if (!strncmp(line, version->line, strlen(version->line)))
            return true;
    return false;
}

bool process_is_frozen(pid_t pid)
{
    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
        if (is_frozen_in(pid, &versions[i]))
            return true;
    return false;
}
