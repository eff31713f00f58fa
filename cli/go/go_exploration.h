/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the parts of `go explore` share: one exploration, and the report of it. */
#ifndef TRACECTL_CLI_GO_GO_EXPLORATION_H
#define TRACECTL_CLI_GO_GO_EXPLORATION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "analyzer/go/coverage.h"
#include "cli/go/go_meanwhile.h"
#include "cli/go/go_session.h"
#include "cli/go/go_slowdown.h"
#include "cli/go/go_users.h"
#include "collector/go/strategy.h"

enum { GO_SCHEDULE_MAX = 320 };

struct go_explore_arguments {
    struct go_session_options session;
    unsigned long runs, yields, jobs;
    double coverage; /* percent at which to stop; 0: never */
    const char *seed;
};

/* The observer of one process. */
struct go_observed {
    pid_t pid;
    unsigned worker;
    struct go_coverage_observer *observer;
    struct go_meanwhile *meanwhile;
    struct exploration *exploration;
    struct go_observed *next;
};

/* One execution beside others. */
struct go_explore_worker {
    uint32_t execution; /* from 1 */
    uint32_t coverage_run;
    struct go_schedule taken; /* the delays of this execution */
    struct go_hold_rule rule;
    uint64_t begun_ns;         /* CLOCK_MONOTONIC */
    uint64_t hits, drained_ns; /* of its processes: recorded ones, and at places; held at the end */
};

struct exploration {
    const struct go_explore_arguments *arguments;
    struct go_session *session;
    struct go_coverage *coverage;
    struct go_strategy *strategy;
    struct go_users users;
    struct go_slowdown slowdown;
    double slowed; /* times, by probes; 0: not known */
    struct go_observed *observed;
    struct go_program_file *file; /* met last */
    uint64_t seed;
    struct go_explore_worker workers[GO_WORKERS_MAX];
    int outputs[GO_WORKERS_MAX]; /* where the workers' executions print; 0: where tracectl does */
    uint32_t events;
    unsigned running;
    uint32_t begun, ended; /* executions; the last one to end is that with the bug, if there is one */
    uint64_t delays;
    uint64_t unfinished;            /* executions that passed with goroutines that had not ended */
    enum go_verdict_kind kind;      /* of the first bug */
    int64_t process_id;             /* that has it; 0: none has */
    char schedule[GO_SCHEDULE_MAX]; /* of that execution */
    char *output;                   /* that it printed, to be freed; NULL: not kept */
};

/* Prints the verdict of a finished exploration, which is run `run_id` of `store`, as text or JSON. */
int go_exploration_report(struct tracestore *store, const struct exploration *exploration, int64_t run_id,
                          struct error *err);

#endif
