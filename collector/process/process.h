/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What /proc says about a process: its image, its command line, its MPI rank, its threads, its mappings. */
#ifndef TRACECTL_COLLECTOR_PROCESS_PROCESS_H
#define TRACECTL_COLLECTOR_PROCESS_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct error;

/* A thread by whose number /proc shows the process's memory, mappings, files and root: `pid`, unless its first thread
 * has ended before the others, which leaves a zombie that has none of them. `pid`, too, when there is no other. */
pid_t process_shown_thread(pid_t pid);

/* "/proc/PID/exe": opens and probes the very file that runs, deleted, replaced or in a container as it may
 * be. */
void process_exe_link(pid_t pid, char *ret_path, size_t size);

/* "/proc/PID/root": where the process's file system begins. */
void process_root_link(pid_t pid, char *ret_path, size_t size);

/* "/proc/PID/map_files/START-END": opens the file that is mapped there (CAP_CHECKPOINT_RESTORE). */
void process_mapped_link(pid_t pid, uint64_t start, uint64_t end, char *ret_path, size_t size);

/* Opens /proc/PID/mem with `flags`, close-on-exec. The descriptor, or a negative errno. */
int process_memory_open(pid_t pid, int flags);

/* The path of the executable as the process sees it, or "?" when it is gone. The caller frees it. */
char *process_exe(pid_t pid);

/* Cuts " (deleted)" off the path of an executable, which the kernel puts behind that of a deleted file. */
void process_exe_strip_mark(char *path);

/* The arguments, separated by spaces, or "" when the process is gone. The caller frees it. */
char *process_command_line(pid_t pid);

/* The rank that an MPI launcher put into the environment (PMI_RANK, PMIX_RANK, OMPI_COMM_WORLD_RANK,
 * SLURM_PROCID), or -1. */
int process_rank(pid_t pid);

/* The process that thread `tid` belongs to (itself for a main thread), or -ESRCH. */
pid_t process_of_thread(pid_t tid);

/* The process that has made it, or that has taken it over since; 0: it is gone. */
pid_t process_parent(pid_t pid);

/* The thread ids of a process in the order in which they were made, the main thread first. The caller frees
 * them. -ESRCH. */
int process_threads(pid_t pid, pid_t **ret_tids, size_t *ret_count, struct error *err);

/* The CPU time that a process has used so far; 0 when it is gone. */
uint64_t process_cpu_ns(pid_t pid);

/* The processes whose parent is `pid`, whichever of its threads made them; none when it is gone. The caller
 * frees them. */
int process_children(pid_t pid, pid_t **ret_pids, size_t *ret_count, struct error *err);

/* The processes for which `wanted` is true, in ascending order. The caller frees them. -ENOMEM. */
int processes_that(bool (*wanted)(void *context, pid_t pid), void *context, pid_t **ret_pids,
                   size_t *ret_count);

/* The processes that run the program in that file, in ascending order. The caller frees them. -ENOMEM. */
int process_runners(dev_t device, ino_t inode, pid_t **ret_pids, size_t *ret_count);

/* Whether a breakpoint instruction in its code may be its own or its debugger's: it is traced by
 * ptrace(2), or handles SIGTRAP. */
bool process_may_have_breakpoints(pid_t pid);

/* Whether it stands still by SIGSTOP or the like. */
bool process_is_stopped(pid_t pid);

/* Whether a thread that is still listed has ended: the first one of a process, whose others run, or one that nobody has
 * waited for yet. */
bool thread_has_ended(pid_t tid);

/* Whether it has not ended: a zombie has, unless threads other than its first still run. One that cannot be looked at
 * has not. */
bool process_is_running(pid_t pid);

/* Whether it has memory of its own: a kernel thread and a zombie have none. */
bool process_has_memory(pid_t pid);

/* The name of a thread (its comm), or "" when it is gone. The caller frees it. */
char *process_thread_name(pid_t pid, pid_t tid);

/* The first executable mapping of the process's own program: its start and file offset. -ENOENT: none. */
int process_exe_mapping(pid_t pid, uint64_t *ret_start, uint64_t *ret_offset);

#endif
