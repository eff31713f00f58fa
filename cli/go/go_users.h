/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which goroutines come to which places of the source, for `go explore`: distinguished by where they were
 * created. */
#ifndef TRACECTL_CLI_GO_GO_USERS_H
#define TRACECTL_CLI_GO_GO_USERS_H

#include <stdint.h>
#include <sys/types.h>

#include "analyzer/go/places.h"
#include "analyzer/go/replay.h"
#include "collector/go/strategy.h"

/* All zero is empty. */
struct go_users {
    struct go_user_place *places;
};

/* An operation of process `pid`, which `replay` has just been fed. -ENOMEM. */
int go_users_add(struct go_users *users, pid_t pid, const struct go_replay *replay,
                 const struct process_event *event, const struct go_place_source *source);

/* The goroutines that have come to a line of the source so far. */
struct go_place_users go_users_of(const struct go_users *users, const char *file, int line);

void go_users_release(struct go_users *users);

#endif
