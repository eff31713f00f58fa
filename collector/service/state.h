/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to collector/service/: what the daemon knows of its recordings. */
#ifndef TRACECTL_COLLECTOR_SERVICE_STATE_H
#define TRACECTL_COLLECTOR_SERVICE_STATE_H

#include "collector/service/worker.h"

/* A recording that goes on. */
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
    uint64_t round, begun_ns, scanned_ns, looked_ns;
    uint64_t past_cpu_ns; /* of recorders that have ended */
    double cpu;           /* of a processor, over the last ten seconds or so */
    uint64_t memory_bytes, store_bytes;
    unsigned over_cpu; /* looks in a row */
    struct service_counters counters;
    bool stopping, full;
};

static inline const struct worker_figures *worker_figures(const struct worker *worker)
{
    return &worker->page->copies[__atomic_load_n(&worker->page->current, __ATOMIC_ACQUIRE)];
}

/* Has the recording end cleanly, soon. */
void service_stop_worker(struct service *service, struct worker *worker, const char *why);

/* Looks at /proc for processes of targets that nobody records, and begins to (scan.c). */
void service_scan(struct service *service);

/* Whether a recording of the target has the process, and not one that had its number before. */
bool service_has_process(const struct service *service, const char *target, struct service_identity process);

/* Begins one (workers.c). */
void service_begin(struct service *service, const struct service_target *target,
                   const struct service_process *process);
/* Takes note of recordings that have ended. */
void service_reap(struct service *service);
/* Whether a process has failed of late and is left alone. */
bool service_rests(const struct service *service, const struct service_process *process, uint64_t now);

/* Once a second: processor time, memory, disk; ends recordings that go beyond (limits.c). */
void service_look_at_limits(struct service *service);

/* Answers to "status" and "commit TARGET" (JSON) and "metrics" (Prometheus); NULL: no such word, no memory
 * (figures.c). */
char *service_answer(void *service, const char *word);

#endif
