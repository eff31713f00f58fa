/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whoever wants to know what goroutines do while it is recorded. */
#ifndef TRACECTL_COLLECTOR_GO_OBSERVER_H
#define TRACECTL_COLLECTOR_GO_OBSERVER_H

#include <sys/types.h>

#include "collector/go/program.h"
#include "store/streams/go_events.h"

/* A process whose goroutines are recorded. */
struct go_process {
    pid_t pid;
    unsigned number; /* P of its labels P.gN */
    int64_t process_id;
    const struct go_program_file *file;
};

struct go_observer {
    /* An event, in the order of the process's sequence. <0 ends the recording. */
    int (*event)(void *context, const struct go_process *process, const struct process_event *event);
    /* The sequence is over. `exit_status` as in tracestore_run; -1: the process continues, or it is unknown.
     */
    int (*end)(void *context, const struct go_process *process, int exit_status);
    void *context;
};

#endif
