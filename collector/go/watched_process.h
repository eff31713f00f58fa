/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to watch.c: one Go program that is watched, and whether it will ever end. */
#ifndef TRACECTL_COLLECTOR_GO_WATCHED_PROCESS_H
#define TRACECTL_COLLECTOR_GO_WATCHED_PROCESS_H

#include <uthash.h>

#include "collector/go/watch.h"

struct watched_process {
    pid_t pid;
    const struct go_watch_observer *observer; /* wants to know of actions */
    struct go_process process;
    struct go_replay *replay;
    struct go_hold_rule rule;
    uint64_t begun_ns, judged_ns, judge_every_ns, delays, drained_ns;
    uint64_t seen_ns;        /* CLOCK_REALTIME: what happened in the process until then has been replayed */
    uint64_t stuck_since_ns; /* of that clock: since when it is judged to be deadlocked; 0: it is not */
    enum go_end end;
    UT_hash_handle hh;
};

/* Begins to watch a process; `observer` is borrowed. -ENOMEM. */
int watched_process_new(const struct go_process *process, const struct go_watch_observer *observer,
                        struct watched_process **ret_process);
void watched_process_free(struct watched_process *process);

/* What is to be said of it as it stands; `exit_status`: -1 while it has none. The caller releases the
 * verdict. -ENOMEM. */
int watched_process_judge(const struct watched_process *process, int exit_status,
                          struct go_verdict *ret_verdict);

/* Whether the process can never end: its main goroutine, or that of a test, has been stuck for `patience_ns`,
 * whatever the others do. Events that have not been read yet may tell otherwise, so that what counts is the
 * time up to which they have. `now`: CLOCK_MONOTONIC. */
bool watched_process_is_deadlocked(struct watched_process *process, uint64_t patience_ns, uint64_t now);

#endif
