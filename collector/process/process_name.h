/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Processes by name. A process has up to three names: the file name of its executable, its command name (comm,
 * what ps and pgrep show), and the file name in its first argument. They differ where the executable is a link
 * (Debian's redis-server is one to redis-check-rdb) or where the process renames itself.
 */
#ifndef TRACECTL_COLLECTOR_PROCESS_PROCESS_NAME_H
#define TRACECTL_COLLECTOR_PROCESS_PROCESS_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct error;

/* The kernel keeps this many characters of a command name; a name of this length may be cut. */
#define PROCESS_COMMAND_LENGTH 15

struct process_name {
    char executable[256];                     /* "" where it may not be read */
    char command[PROCESS_COMMAND_LENGTH + 1]; /* "" where the process has gone */
    char argument[256]; /* read only where `command` may be cut: it is the process's own memory; else "" */
};

/* Reads the names of a process from /proc. `path` is that of its executable where it is known, or NULL. */
void process_name_read(pid_t pid, const char *path, struct process_name *ret_name);

/* The program's name in a first argument ("/usr/bin/redis-server *:6379", "postgres: writer"). */
void process_name_of_argument(const char *argument, char *ret_name, size_t size);

/* Whether one of the names matches the glob `pattern`, as fnmatch(3) reads it. */
bool process_name_matches(const struct process_name *name, const char *pattern);

/* The processes with a name that matches `pattern`, in ascending order, without the calling process, kernel
 * threads and zombies. The caller frees them. -ENOMEM. */
int processes_named(const char *pattern, pid_t **ret_pids, size_t *ret_count, struct error *err);

#endif
