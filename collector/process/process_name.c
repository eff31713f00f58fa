/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/process/process_name.h"

#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "collector/process/proc_numbers.h"
#include "collector/process/process.h"
#include "collector/process/target_memory.h"

void process_name_of_argument(const char *argument, char *ret_name, size_t size)
{
    size_t length = strcspn(argument, " ");
    AUTO_FREE char *program = NULL;

    if (length && argument[length - 1] == ':')
        length--;
    program = strndup(argument, length);
    snprintf(ret_name, size, "%s", program ? path_file_name(program) : "");
}

static void read_argument(pid_t pid, struct process_name *name)
{
    char text[PATH_MAX];
    ssize_t got = target_proc_read(pid, "cmdline", 0, text, sizeof(text) - 1);

    if (got <= 0)
        return;
    text[got] = '\0';
    process_name_of_argument(text, name->argument, sizeof(name->argument));
}

void process_name_read(pid_t pid, const char *path, struct process_name *ret_name)
{
    AUTO_FREE char *found = path ? NULL : process_exe(pid);
    AUTO_FREE char *command = process_thread_name(pid, pid);

    *ret_name = (struct process_name){0};
    path = path ? path : found;
    if (found)
        process_exe_strip_mark(found);
    if (path && strcmp(path, "?") != 0)
        snprintf(ret_name->executable, sizeof(ret_name->executable), "%s", path_file_name(path));
    if (command)
        snprintf(ret_name->command, sizeof(ret_name->command), "%s", command);
    if (strlen(ret_name->command) == PROCESS_COMMAND_LENGTH)
        read_argument(pid, ret_name);
}

static bool one_matches(const char *name, const char *pattern)
{
    return *name && !fnmatch(pattern, name, 0);
}

bool process_name_matches(const struct process_name *name, const char *pattern)
{
    return one_matches(name->executable, pattern) || one_matches(name->command, pattern) ||
           one_matches(name->argument, pattern);
}

static bool is_found(void *context, pid_t pid)
{
    struct process_name name;

    if (pid == getpid())
        return false;
    process_name_read(pid, NULL, &name);
    return process_name_matches(&name, context) && process_has_memory(pid);
}

int processes_named(const char *pattern, pid_t **ret_pids, size_t *ret_count, struct error *err)
{
    return processes_that(is_found, (void *)(uintptr_t)pattern, ret_pids, ret_count) ? error_no_memory(err)
                                                                                     : 0;
}
