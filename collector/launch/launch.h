/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Starts a command in two steps, so that it can be made known to the kernel side before it runs. */
#ifndef TRACECTL_COLLECTOR_LAUNCH_LAUNCH_H
#define TRACECTL_COLLECTOR_LAUNCH_LAUNCH_H

#include <stddef.h>
#include <sys/types.h>

struct error;

struct launch {
    pid_t pid;
    int gate;    /* a byte written here lets the child exec */
    int failure; /* the child writes its errno here when exec fails; closed by a successful one */
};

/* Descriptors that become the command's; -1: the collector's own. */
struct launch_streams {
    int output, errors; /* standard output and standard error */
};

/* The file that `command` means, looked up in PATH as execvp does. -ENOENT, -EACCES. */
int launch_find(const char *command, char *ret_path, size_t size, struct error *err);

/* When this process has inherited an ignored SIGCHLD, it would not be told how its children end: from now on
 * it is, and what is launched has it ignored all the same. */
void launch_want_ends(void);

/* Forks a child that waits. Fails when no such command can be found (-ENOENT) or run (-EACCES). When the
 * collector dies before launch_go the child goes away without a trace. */
int launch_prepare(char *const *argv, const struct launch_streams *streams, struct launch *ret_launch,
                   struct error *err);

/* Lets the child exec. The exec's outcome comes with launch_result, since the child may be held in between.
 */
int launch_go(struct launch *launch, struct error *err);

/* 1: exec has succeeded, 0: not known yet, <0: it failed with that errno. Does not wait. */
int launch_result(struct launch *launch, const char *command, struct error *err);

/* Closes what is open. The child is not waited for. */
void launch_release(struct launch *launch);

#endif
