/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The processes of an MPI job, from its launcher (mpiexec, srun, prterun...). */
#ifndef TRACECTL_COLLECTOR_PROCESS_RANK_PROCESSES_H
#define TRACECTL_COLLECTOR_PROCESS_RANK_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct error;

/* The ranks that `pid` has launched on this machine: the processes below it, outermost first, to which a rank
 * was given (process_rank). A rank's own children have its number, too, and are not ranks; but a shell or
 * another wrapper is not taken for the rank when a process below it has an MPI library mapped and it has not.
 * None when `pid` is a rank itself, or no launcher. The caller frees them. -ENOMEM. */
int rank_processes(pid_t pid, pid_t **ret_pids, size_t *ret_count, struct error *err);

/* `pid` and all processes below it. The caller frees them. -ENOMEM. */
int process_family(pid_t pid, pid_t **ret_pids, size_t *ret_count, struct error *err);

#endif
