/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/process/needed.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"

extern char **environ;

/* Starts `interpreter --list program`; what it prints comes out of `*ret_output`. */
static int start_list(const char *interpreter, const char *program, pid_t *ret_pid, int *ret_output)
{
    char *arguments[] = {(char *)interpreter, (char *)"--list", (char *)program, NULL};
    posix_spawn_file_actions_t actions;
    int ends[2], r;

    if (pipe(ends))
        return -errno;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    r = posix_spawn(ret_pid, interpreter, &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (r) {
        close(ends[0]);
        return -r;
    }
    *ret_output = ends[0];
    return 0;
}

/* "\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f...)", or without the first part. */
static char *path_of_line(char *line)
{
    char *path = strchr(line, '/'), *end = strstr(line, " (0x");

    if (!path || !end || end < path)
        return NULL;
    *end = '\0';
    return strdup(path);
}

int libraries_needed(const char *interpreter, const char *program, char ***ret_paths, size_t *ret_count,
                     struct error *err)
{
    AUTO_FREE char *line = NULL;
    char **paths = NULL;
    size_t count = 0, capacity = 0, size = 0;
    pid_t pid = -1;
    FILE *lines;
    int output = -1, r = start_list(interpreter, program, &pid, &output);

    if (r)
        return error_set(err, r, NULL, "cannot ask %s for the libraries of %s", interpreter, program);
    lines = fdopen(output, "r");
    while (lines && getline(&line, &size, lines) > 0) {
        char *path = path_of_line(line);

        if (!path)
            continue;
        if (array_reserve(&paths, &capacity, count + 1)) {
            free(path);
            break;
        }
        paths[count++] = path;
    }
    if (lines)
        fclose(lines);
    else
        close(output);
    waitpid(pid, NULL, 0);
    *ret_paths = paths;
    *ret_count = count;
    return 0;
}
