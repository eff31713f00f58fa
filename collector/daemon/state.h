/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to collector/daemon/: what the daemon knows of its recordings. */
#ifndef TRACECTL_COLLECTOR_DAEMON_STATE_H
#define TRACECTL_COLLECTOR_DAEMON_STATE_H

#include "collector/daemon/worker.h"

/* A recording that continues. */
struct worker {
    pid_t pid;
    char *target;                   /* name */
    struct service_process process; /* the first that it records */
    struct worker_page *page;       /* shared with it */
    uint64_t begun_ns;              /* CLOCK_MONOTONIC */
    uint64_t cpu_ns, memory_bytes;  /* at the last look */
    bool stopping, over;            /* over: beyond a limit */
};

/* A process that is not to be tried again at once. */
struct rest {
    pid_t pid;
    uint64_t started, until_ns;
    unsigned failures; /* in a row */
};

/* Processes of a target that were seen and not recorded yet. */
struct newcomer {
    pid_t pid;
    uint64_t started;
    size_t target;
    uint64_t round; /* when it was seen first */
};

/* Processes of a user that match a target and find no place (slots.c). */
struct left_out {
    uid_t user;
    char target[65];           /* name */
    pid_t pid;                 /* of one of them */
    uint64_t processes, round; /* at the last scan that saw one */
};
#define EXCLUDED_MAX 64 /* kept; more are only counted */

struct service_counters {
    uint64_t begun, ended, failed, stopped_cpu, stopped_memory, stopped_store, refused, reloads, bad_reloads,
        denied;
};

struct service {
    const char *config_path;
    pid_t pid; /* the daemon's own */
    struct service_config config;
    int signals, listener;
    struct worker *workers;
    size_t worker_count, worker_capacity;
    struct rest *rests;
    size_t rest_count, rest_capacity;
    struct newcomer *newcomers;
    size_t newcomer_count, newcomer_capacity;
    uint64_t round, begun_ns, scanned_ns, sampled_ns;
    uint64_t past_cpu_ns; /* of recorders that have ended */
    double cpu;           /* of a processor, over the last ten seconds or so */
    uint64_t memory_bytes, store_bytes;
    unsigned over_cpu; /* looks in a row */
    struct service_counters counters;
    struct left_out left_out[EXCLUDED_MAX];
    size_t excluded_count;
    bool stopping;
};

static inline const struct worker_figures *worker_figures(const struct worker *worker)
{
    return &worker->page->copies[__atomic_load_n(&worker->page->current, __ATOMIC_ACQUIRE)];
}

/* Has the recording end cleanly, soon. */
void service_stop_worker(struct service *service, struct worker *worker, const char *why);

/* Looks at /proc for processes of targets that are not recorded, and begins to (scan.c). */
void service_scan(struct service *service);

/* Whether a recording of the target has the process, and not one that had its number before. */
bool service_has_process(const struct service *service, const char *target, struct service_identity process);

/* Begins one (workers.c). */
void service_begin(struct service *service, const struct service_target *target,
                   const struct service_process *process);
/* Whether there is a place for one more recording of the process's user. Where all are taken, a user with
 * less than an equal share takes one from the user who has most: it is free at a later scan. Who finds none
 * is noted and logged (slots.c). */
bool service_has_place(struct service *service, const struct service_target *target,
                       const struct service_process *process);
/* After a scan: forgets those that were left out before and not now. */
void service_forget_excluded(struct service *service);

/* Takes note of recordings that have ended. */
void service_reap(struct service *service);
/* Whether a process has failed of late and is not tried. */
bool service_rests(const struct service *service, const struct service_process *process, uint64_t now);

/* Once a second: processor time, memory, disk; ends recordings that go beyond (limits.c). */
void service_sample_limits(struct service *service);

/* Answers to "status" and "commit TARGET" (JSON) and "metrics" (Prometheus); NULL: no such word, no memory
 * (figures.c). */
char *service_answer(void *service, const char *word);

#endif
