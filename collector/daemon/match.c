/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/daemon/match.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "collector/process/proc_numbers.h"
#include "collector/process/process.h"

/* ------------------------------------------------------------------------------------ /proc */

static bool read_text(pid_t pid, const char *name, char *ret_text, size_t size)
{
    char path[64];
    AUTO_CLOSE int fd = -1;
    ssize_t got;

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    got = fd < 0 ? -1 : read(fd, ret_text, size - 1);
    if (got <= 0)
        return false;
    ret_text[got] = '\0';
    return true;
}

bool service_stat_parse(const char *text, struct service_process *process)
{
    const char *rest = strrchr(text, ')'); /* the name before it may have anything */
    unsigned long long started;
    char state;
    int parent;

    /* The 3rd field, the 4th and the 22nd. */
    if (!rest ||
        sscanf(rest + 1, " %c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu",
               &state, &parent, &started) != 3)
        return false;
    process->parent = parent;
    process->started = started;
    return state != 'Z' && state != 'X';
}

bool service_status_parse(const char *text, struct service_process *process)
{
    /* The name before it is the process's own choice, but has no line breaks. */
    const char *line = strstr(text, "\nUid:");
    unsigned user;

    if (!line || sscanf(line, "\nUid: %u", &user) != 1)
        return false;
    process->user = user;
    return true;
}

static bool read_stat(struct service_process *process)
{
    char text[1024];

    return read_text(process->pid, "stat", text, sizeof(text)) && service_stat_parse(text, process);
}

static bool read_user(struct service_process *process)
{
    char text[8192];

    return read_text(process->pid, "status", text, sizeof(text)) && service_status_parse(text, process);
}

static bool read_path(struct service_process *process)
{
    char link[64];
    ssize_t length;

    snprintf(link, sizeof(link), "/proc/%d/exe", (int)process->pid);
    length = readlink(link, process->path, sizeof(process->path) - 1);
    if (length <= 0)
        return false;
    process->path[length] = '\0';
    process_exe_strip_mark(process->path);
    return true;
}

bool service_process_read(pid_t pid, struct service_process *ret_process)
{
    char text[8192];

    ret_process->pid = pid;
    ret_process->cgroup[0] = '\0';
    if (!read_stat(ret_process) || !read_path(ret_process) || !read_user(ret_process))
        return false;
    process_name_read(pid, ret_process->path, &ret_process->name);
    if (read_text(pid, "cgroup", text, sizeof(text)))
        service_cgroup_path(text, ret_process->cgroup, sizeof(ret_process->cgroup));
    return true;
}

uint64_t service_process_started(pid_t pid)
{
    struct service_process process = {.pid = pid};

    return read_stat(&process) ? process.started : 0;
}

bool service_cgroup_path(const char *text, char *ret_path, size_t size)
{
    static const char *const hierarchies[] = {"0::", "1:name=systemd:"};

    for (size_t i = 0; i < sizeof(hierarchies) / sizeof(hierarchies[0]); i++) {
        size_t prefix = strlen(hierarchies[i]);

        for (const char *line = text; line; line = strchr(line, '\n')) {
            line += *line == '\n';
            if (strncmp(line, hierarchies[i], prefix) != 0)
                continue;
            snprintf(ret_path, size, "%.*s", (int)strcspn(line + prefix, "\n"), line + prefix);
            return true;
        }
    }
    return false;
}

/* ------------------------------------------------------------------------------------ targets */

/* Whether the pattern is the path, or one that lies above it. */
static bool is_at_or_below(const char *pattern, const char *path)
{
    size_t length = strlen(pattern);

    while (length > 1 && pattern[length - 1] == '/')
        length--;
    return !fnmatch(pattern, path, FNM_PATHNAME | FNM_LEADING_DIR) ||
           (!strncmp(pattern, path, length) && (!path[length] || path[length] == '/'));
}

/* Whether a component of the path is the unit's name. */
static bool is_in_unit(const char *unit, const char *cgroup)
{
    size_t length = strlen(unit);

    for (const char *at = cgroup; (at = strstr(at, unit)); at++)
        if (at > cgroup && at[-1] == '/' && (!at[length] || at[length] == '/'))
            return true;
    return false;
}

/* Engines name control groups .../docker-ID.scope, /docker/ID, .../crio-ID.scope, .../libpod-ID.scope and the
 * like: wherever the digits begin, they begin. */
static bool is_in_container(const char *id, const char *cgroup)
{
    for (const char *at = cgroup; (at = strstr(at, id)); at++)
        if (at > cgroup && (at[-1] == '/' || at[-1] == '-'))
            return true;
    return false;
}

bool service_process_is_own(const struct service_process *process)
{
    static char own[PATH_MAX];

    if (!*own && readlink("/proc/self/exe", own, sizeof(own) - 1) <= 0)
        return process->pid == getpid();
    return !strcmp(own, process->path);
}

bool service_target_matches(const struct service_target *target, const struct service_process *process)
{
    return (!target->process || process_name_matches(&process->name, target->process)) &&
           (!target->path || !fnmatch(target->path, process->path, FNM_PATHNAME)) &&
           (!target->cgroup || is_at_or_below(target->cgroup, process->cgroup)) &&
           (!target->unit || is_in_unit(target->unit, process->cgroup)) &&
           (!target->container || is_in_container(target->container, process->cgroup)) &&
           (!target->user || target->uid == process->user);
}

void service_count_processes(const struct service_config *config, size_t *ret_counts)
{
    AUTO_PROC_NUMBERS pids;
    pid_t pid;

    memset(ret_counts, 0, config->target_count * sizeof(*ret_counts));
    proc_numbers_open(&pids, "/proc");
    while ((pid = proc_numbers_next(&pids)) > 0) {
        struct service_process process;

        if (!service_process_read(pid, &process) || service_process_is_own(&process))
            continue;
        for (size_t i = 0; i < config->target_count; i++)
            ret_counts[i] += service_target_matches(&config->targets[i], &process);
    }
}
