/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A process that shares all memory and descriptors with the one that made it, and is one by itself to wait(2) and
 * ptrace(2): what it traces is not mixed up with what the others wait for.
 *
 * It is a child by clone(2) with CLONE_VM and CLONE_FILES, as vfork(2) makes them: of a thread, the host, that is
 * suspended by CLONE_VFORK until the child ends. So the child may run on the host's stack and be the host to
 * the C library (thread-local variables, locks). It dies with the host (PR_SET_PDEATHSIG), and so with the
 * process, however that ends. Signals are blocked in it.
 */
#ifndef TRACECTL_COLLECTOR_PTRACE_SHARED_PROCESS_H
#define TRACECTL_COLLECTOR_PTRACE_SHARED_PROCESS_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

struct shared_process {
    int (*main)(void *context); /* what it does; returns when it is to end */
    void (*ended)(void *context,
                  int why); /* in the host: it has ended, 0, or could not be made, a negative errno */
    void *context;
    pid_t maker;
    pthread_t host;
};

/* Starts it. `process`, filled in up to `context`, must stay where it is until shared_process_join(). */
int shared_process_start(struct shared_process *process);

/* Waits for its end, which the caller has brought about. */
void shared_process_join(struct shared_process *process);

#endif
