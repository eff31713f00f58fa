/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One recording of the daemon's, in a process of its own: a process of a target and what it forks, until it
 * ends, or the run is old enough, or SIGTERM. It ends cleanly also when the daemon dies.
 */
#ifndef TRACECTL_COLLECTOR_DAEMON_WORKER_H
#define TRACECTL_COLLECTOR_DAEMON_WORKER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "collector/budget/budget_status.h"
#include "collector/daemon/config.h"
#include "collector/daemon/match.h"

#define WORKER_PIDS 2048
#define WORKER_HOT 10

struct worker_function {
    char name[160];
    enum record_state state;
    double calls_per_second;
};

/* How far a recording is. */
struct worker_figures {
    int64_t run; /* 0: not begun yet; with a flight recorder, the last that was made */
    bool begun, is_flight;
    uint64_t commits;          /* runs that a flight recorder has made */
    uint64_t recorded, missed; /* calls; known with a budget only */
    uint64_t stored_threads;
    uint64_t segments_closed_early, dropped_runs;
    bool has_budget;
    struct budget_totals budget;
    struct service_identity processes[WORKER_PIDS]; /* that it records, as far as they fit */
    size_t process_count;
    struct worker_function hot[WORKER_HOT];
    size_t hot_count;
};

/* In memory that daemon and worker share: the worker fills the copy that is not current, then makes it so. */
struct worker_page {
    unsigned current;
    struct worker_figures copies[2];
    char error[480]; /* why it failed */
};

struct worker_order {
    const struct service_config *config;
    const struct service_target *target;
    const struct service_process *process;
    struct worker_page *page;
    pid_t daemon;      /* its parent: the recording ends with it */
    uint64_t slice_ns; /* between two updates of the page */
};

/* How a recording's process exits. */
enum worker_status {
    WORKER_ENDED,
    WORKER_FAILED, /* page->error says why */
    WORKER_GONE,   /* the same, but the process that was to be recorded has ended */
};

/* Records, in a process that was forked for it. Returns its exit status (enum worker_status). */
int worker_run(const struct worker_order *order);

#endif
