/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The rights that a process has: users, groups, capabilities, and the user namespace where these count. */
#ifndef TRACECTL_COLLECTOR_PROCESS_CREDENTIALS_H
#define TRACECTL_COLLECTOR_PROCESS_CREDENTIALS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct credentials {
    uint32_t users[4], groups[4]; /* real, effective, saved, of files */
    uint64_t capabilities[5];     /* inheritable, permitted, effective, bounding, ambient */
    uint64_t other_groups;        /* a hash of their list */
    ino_t user_namespace;         /* 0: not known */
};

/* Those of the main thread. -ESRCH. */
int process_credentials(pid_t pid, struct credentials *ret);

/* A user namespace that is not known of both is not compared. */
bool credentials_equal(const struct credentials *one, const struct credentials *other);

#endif
