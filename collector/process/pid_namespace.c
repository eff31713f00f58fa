/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/process/pid_namespace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"

/* It has this number (include/linux/proc_ns.h, PROC_PID_INIT_INO). */
#define INITIAL_PID_NAMESPACE 0xeffffffcu

static bool has_initial_number(const char *link, bool otherwise)
{
    struct stat namespace;

    return stat(link, &namespace) ? otherwise : namespace.st_ino == INITIAL_PID_NAMESPACE;
}

/* A kernel without pid namespaces has neither link. One for children that has no process yet has no link. */
bool pid_namespace_is_initial(void)
{
    return access("/proc/self/ns/pid", F_OK) || (has_initial_number("/proc/self/ns/pid", true) &&
                                                 has_initial_number("/proc/self/ns/pid_for_children", false));
}

/* The namespaces of our children and our own, and the one that /proc is of. */
bool pid_namespace_is_whole(void)
{
    struct stat own, childrens;
    char self[32] = "";

    if (readlink("/proc/self", self, sizeof(self) - 1) < 0 || atoi(self) != (int)getpid())
        return false;
    return stat("/proc/self/ns/pid", &own) ||
           (!stat("/proc/self/ns/pid_for_children", &childrens) && own.st_ino == childrens.st_ino);
}

int pid_namespace_check(struct error *err)
{
    if (pid_namespace_is_initial())
        return 0;
    return error_say(err, -ENOTSUP,
                     "cannot trace processes from inside a pid namespace: the kernel knows process %d by "
                     "another number (run in the host's pid namespace; for a container --pid=host)",
                     (int)getpid());
}

pid_t pid_namespace_innermost(pid_t tid)
{
    AUTO_FCLOSE FILE *status = NULL;
    char path[64], line[1024];
    const char *last;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
    status = fopen(path, "re");
    while (status && fgets(line, sizeof(line), status)) {
        if (strncmp(line, "NSpid:", 6))
            continue;
        last = strrchr(line, '\t');
        return last ? (pid_t)atoi(last) : tid;
    }
    return status ? tid : 0; /* a kernel without namespaces has no such line */
}
