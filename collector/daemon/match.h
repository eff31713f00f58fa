/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which processes a target is. */
#ifndef TRACECTL_COLLECTOR_DAEMON_MATCH_H
#define TRACECTL_COLLECTOR_DAEMON_MATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "collector/daemon/config.h"
#include "collector/process/process_name.h"

/* When a process started, in clock ticks since the machine began; with its number, a name for ever: numbers
 * are used again. */
struct service_identity {
    pid_t pid;
    uint64_t started;
};

/* What a target asks for. Nothing of its environment, and of its arguments at most the first one's name. */
struct service_process {
    pid_t pid, parent;
    uint64_t started; /* as in struct service_identity */
    uid_t user;       /* its real user id */
    char path[4096];  /* of the executable, without " (deleted)" */
    struct process_name name;
    char cgroup[4096]; /* in the unified hierarchy, or in systemd's; "" if unknown */
};

/* Reads it from /proc. False: it has gone, has no executable (a thread of the kernel's), or is a zombie. */
bool service_process_read(pid_t pid, struct service_process *ret_process);

/* When it started, 0: it has gone, or is a zombie. */
uint64_t service_process_started(pid_t pid);

/* Whether it runs the daemon's own program, which is never a target, whatever the patterns say. */
bool service_process_is_own(const struct service_process *process);

bool service_target_matches(const struct service_target *target, const struct service_process *process);

/* How many running processes each target selects now, in config->target_count counts. Only processes whose
 * executable the caller may read are counted. */
void service_count_processes(const struct service_config *config, size_t *ret_counts);

/* What the texts of /proc/PID/stat and status say: parent and start; the real user, who is a setuid program's
 * caller. False: they do not, or it is a zombie. */
bool service_stat_parse(const char *text, struct service_process *process);
bool service_status_parse(const char *text, struct service_process *process);

/* The path in the text of /proc/PID/cgroup; false: none. */
bool service_cgroup_path(const char *text, char *ret_path, size_t size);

#endif
